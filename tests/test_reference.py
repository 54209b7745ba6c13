"""The reference in docs/ is what the code says, is complete, and needs no site to be read."""

from __future__ import annotations

import ast
import re
import runpy

import doc_blocks as docs
import pytest
from hook_examples import HOOKS, example_of

import fsdil_bench

SCRIPT = runpy.run_path(str(docs.ROOT / "docs/make_reference.py"))
#: Exported, and no entry of its own.
NO_ENTRY = {
    "API_VERSION": "a number",
    "State": "a type alias",
    "__version__": "a number",
    "hookimpl": "explained on the page of hooks",
    "knob": "the old name of option",
}


def headings(page: str) -> set[str]:
    text = (docs.ROOT / page).read_text(encoding="utf-8")
    return set(re.findall(r"^##+ (.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", SCRIPT["pages"]().items(), ids=lambda item: item[0].name)
def test_the_page_is_current(page):
    path, text = page
    assert path.read_text(encoding="utf-8") == text, "run: python docs/make_reference.py"


def test_everything_exported_has_an_entry():
    there = headings("docs/api.md") | headings("docs/hooks.md")
    assert set(fsdil_bench.__all__) - there == set(NO_ENTRY)


def test_adapters_are_there():
    from fsdil_bench import adapters

    assert set(adapters.__all__) <= headings("docs/api.md")


@pytest.mark.parametrize(
    "name",
    ["Method.learn", "RouterMethod.predict_in_domain", "Context.generator", "TrainDomain.batches"],
)
def test_members_are_there(name):
    assert name in headings("docs/api.md")


def test_what_the_harness_alone_uses_is_not():
    assert not {"TrainDomain.close", "Backbone.place"} & headings("docs/api.md")


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_shown_with_its_example(name):
    assert example_of(name) in (docs.ROOT / "docs/hooks.md").read_text(encoding="utf-8")


def test_a_long_signature_has_a_line_for_each_parameter():
    source = (
        "def long(self, one: int, /, two: str='x', *more: int, three: dict[str, int], "
        "four=None, **rest) -> None: ..."
    )
    [tree] = ast.parse(source).body
    assert SCRIPT["signature"](tree).splitlines() == [
        "def long(",
        "    one: int,",
        "    /,",
        '    two: str = "x",',
        "    *more: int,",
        "    three: dict[str, int],",
        "    four = None,",
        "    **rest,",
        ") -> None: ...",
    ]
