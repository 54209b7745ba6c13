"""The version of a class that is in no file, as in a notebook: what it covers, and what not."""

from __future__ import annotations

import linecache
import sys
import types
from itertools import count

import pytest

import fsdil_bench
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.code_hash import code_version

METHOD = '''
class Cell(Method):
    """Class means."""

    inputs = frozenset({"features", "images"})

    def __init__(self, context):
        super().__init__(context)
        self.sums = torch.zeros(len(context.class_names), context.backbone.embed_dim)

    @torch.no_grad()
    def learn(self, domain):
        self.sums.index_add_(0, domain.labels, helper(domain.features()))

    def predict(self, batch):
        return (batch.features @ self.sums.T).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"]
'''
HELPER = "FACTOR = 2.0\n\ndef helper(x):\n    return x * FACTOR\n"


@pytest.fixture
def notebook(monkeypatch):
    """Run cells one after another in a module without a file; gives its names."""
    numbers = count()

    def start():
        module = types.ModuleType("a_notebook")
        monkeypatch.setitem(sys.modules, "a_notebook", module)

        def run(*cells):
            for text in cells:
                name = f"/tmp/ipykernel_1/{next(numbers)}.py"
                lines = text.splitlines(keepends=True)
                linecache.cache[name] = (len(text), None, lines, name)
                exec(compile(text, name, "exec"), vars(module))
            return module

        run("import torch\nfrom fsdil_bench import Method, option")
        return run

    return start


def version(start, *cells):
    return code_version(start()(*cells).Cell)


def test_the_same_cells_have_the_same_version(notebook):
    first = version(notebook, HELPER, METHOD)
    assert first == version(notebook, HELPER, METHOD)
    assert first == version(notebook, "unused = 1", METHOD, HELPER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("argmax(1)", "argmin(1)"),
        ('"features", "images"', '"features"'),
        ("FACTOR = 2.0", "FACTOR = 3.0"),
        ("return x * FACTOR", "return x + FACTOR"),
        ("class Cell(Method):", "class Cell(fsdil_bench.RouterMethod):"),
        ("    @torch.no_grad()\n", ""),
        ("def predict(self, batch):", "def predict(self, batch, more=1):"),
    ],
)
def test_a_change_of_what_decides_is_another_version(notebook, old, new):
    text = f"import fsdil_bench\n{HELPER}{METHOD}"
    assert old in text
    assert version(notebook, text) != version(notebook, text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Class means."""', '"""Means of classes."""'),
        ("return x * FACTOR", "return x * FACTOR  # twice"),
        ("    def predict", "\n\n    def predict"),
        ("FACTOR = 2.0", "OTHER = 5\nFACTOR = 2.0"),
    ],
)
def test_a_change_of_anything_else_is_not(notebook, old, new):
    text = HELPER + METHOD
    assert old in text
    assert version(notebook, text) == version(notebook, text.replace(old, new))


def test_a_value_that_changes_in_another_cell_counts(notebook):
    run = notebook()
    module = run(HELPER, METHOD)
    before = code_version(module.Cell)
    run("FACTOR = 3.0")
    assert code_version(module.Cell) != before
    run("FACTOR = 2.0")
    assert code_version(module.Cell) == before


def test_a_function_that_is_put_in_later_counts(notebook):
    run = notebook()
    module = run(HELPER, METHOD)
    before = code_version(module.Cell)
    run("def learn(self, domain):\n    pass\nCell.learn = learn")
    assert code_version(module.Cell) != before


def test_a_base_class_in_another_cell_counts(notebook):
    base = METHOD.replace("class Cell", "class Base")
    child = "class Cell(Base):\n    extra = 1\n"
    first = version(notebook, HELPER, base, child)
    assert first != version(notebook, HELPER, base.replace("argmax", "argmin"), child)
    assert first != version(notebook, HELPER, base, child.replace("1", "2"))


def test_decorated_helpers_and_functions_within_count(notebook):
    helper = (
        "from functools import lru_cache, cached_property\n"
        "STEP = 1\n"
        "def outer(f):\n    def inner(x):\n        return f(x) + STEP\n    return inner\n"
        "@outer\ndef helper(x):\n    return [y for y in x]\n"
        "@lru_cache\ndef cached(x):\n    return x\n"
    )
    text = METHOD + (
        "    @property\n    def size(self):\n        return cached(1)\n"
        "    @cached_property\n    def once(self):\n        return 1\n"
        "    @staticmethod\n    def plain():\n        return 2\n"
        "    @classmethod\n    def made(cls):\n        return cls\n"
    )
    first = version(notebook, helper, text)
    for old, new in (
        ("STEP = 1", "STEP = 2"),
        ("[y for", "[-y for"),
        ("return x\n", "return -x\n"),
    ):
        assert first != version(notebook, helper.replace(old, new), text), old
    for old, new in (
        ("cached(1)", "cached(2)"),
        ("return 1\n", "return 7\n"),
        ("return 2", "return 3"),
    ):
        assert first != version(notebook, helper, text.replace(old, new)), old


def test_options_count_and_their_help_does_not(notebook):
    options = (
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Options:\n"
        '    rate: float = option(0.1, "the rate", minimum=0)\n'
        "    @property\n    def twice(self):\n        return 2 * self.rate\n"
    )
    text = METHOD + "    Config = Options\n"
    first = version(notebook, HELPER, options, text)
    assert first == version(notebook, HELPER, options.replace("the rate", "a rate"), text)
    assert first != version(notebook, HELPER, options.replace("0.1", "0.2"), text)
    assert first != version(notebook, HELPER, options.replace("2 * self", "3 * self"), text)


def test_modules_of_ones_own_count(notebook, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "own_helpers.py"
    text = "import own_helpers\nhelper = own_helpers.helper\n"
    inside = METHOD.replace("helper(", "__import__('torch').add(0, ")
    lazily = inside.replace("return (batch", "import own_helpers\n        return (batch")

    def versions():
        monkeypatch.delitem(sys.modules, "own_helpers", raising=False)
        return version(notebook, text, METHOD), version(notebook, lazily)

    file.write_text("def helper(x):\n    return x\n")
    before = versions()
    assert versions() == before
    file.write_text("def helper(x):\n    return x + 1\n")
    assert all(a != b for a, b in zip(before, versions(), strict=True))


def test_a_built_in_method_below_counts_with_its_files(notebook):
    from fsdil_bench.plugins.cell_code import collect

    base = "from fsdil_methods.frozen.ncm import NearestClassMean"
    found = collect(notebook()(base, "class Cell(NearestClassMean):\n    x = 1").Cell, str)
    assert found.factories == {"fsdil_methods.frozen.ncm:NearestClassMean"}


@pytest.mark.parametrize("value", ["torch.zeros(3)", "object()", "{object()}"])
def test_what_cannot_be_told_is_refused(notebook, value):
    with pytest.raises(RequestError, match="uses 'FACTOR'") as caught:
        version(notebook, HELPER.replace("2.0", value), METHOD)
    assert "in __init__" in caught.value.remedy


def test_plain_values_of_all_kinds_are_told(notebook):
    values = (
        "{'a': [1, 2], 'b': (None, True)}", "frozenset({1, 2})", "torch.float64",
        "torch.device('cpu')", "__import__('pathlib').Path('x')", "range(3).__len__()",
    )  # fmt: skip
    seen = {version(notebook, HELPER.replace("2.0", value), METHOD) for value in values}
    assert len(seen) == len(values)


def test_code_that_python_does_not_keep_is_refused(monkeypatch):
    module = types.ModuleType("a_prompt")
    monkeypatch.setitem(sys.modules, "a_prompt", module)
    text = "import torch\nfrom fsdil_bench import Method\n" + HELPER + METHOD
    exec(compile(text, "<stdin>", "exec"), vars(module))
    with pytest.raises(RequestError, match="does not keep"):
        code_version(module.Cell)


def test_a_class_is_run_by_itself(notebook, toy_registry, tmp_path):
    """Changed code is a new run, the same code is the same run, and nothing is left behind."""
    run = notebook()
    options = {"registry": toy_registry, "out": tmp_path}
    first = fsdil_bench.run(run(HELPER, METHOD).Cell, "toy-1shot", **options)
    assert first.spec["method"] == "cell"
    assert first.method["plugin"] == "notebook"
    assert first.method["summary"] == "Class means"
    assert first.third_party
    again = fsdil_bench.run(run(METHOD).Cell, "toy-1shot", **options)
    assert again == first
    changed = fsdil_bench.run(run(METHOD.replace("argmax", "argmin")).Cell, "toy-1shot", **options)
    assert changed.run_id != first.run_id
    assert "cell" not in toy_registry.methods
    assert {r.run_id for r in fsdil_bench.find_records(tmp_path)} == {first.run_id, changed.run_id}


def test_a_class_with_a_name_of_its_own(notebook, toy_registry, tmp_path):
    made = notebook()(HELPER, METHOD).Cell
    info = fsdil_bench.MethodInfo("renamed", "what it does", made, exemplar_free=False)
    record = fsdil_bench.run(info, "toy-1shot", registry=toy_registry, out=tmp_path)
    assert record.spec["method"] == "renamed"
    assert not record.exemplar_free


def test_names_that_are_taken_or_none(notebook, toy_registry, tmp_path):
    made = notebook()(HELPER, METHOD).Cell
    options = {"registry": toy_registry, "out": tmp_path}
    for method, message in (
        (fsdil_bench.MethodInfo("toy-means", "", made), "already, of 'toy_plugin'"),
        (fsdil_bench.MethodInfo("My Method", "", made), "cannot have this name"),
        (type("_", (made,), {}), "cannot have this name"),
    ):
        with pytest.raises(RequestError, match=message) as caught:
            fsdil_bench.run(method, "toy-1shot", **options)
        assert "MethodInfo(" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "method"),
    [("NearestMean", "nearest-mean"), ("CLIPHead2", "clip-head2"), ("my_idea", "my-idea")],
)
def test_how_a_class_is_called(notebook, toy_registry, name, method):
    made = getattr(notebook()(HELPER, METHOD.replace("Cell", name)), name)
    assert toy_registry.offering(made)[0] == method


def test_a_sealed_run_needs_a_file(notebook, tmp_path):
    made = notebook()(HELPER, METHOD).Cell
    with pytest.raises(RequestError, match="by its name"):
        fsdil_bench.run(made, "drawn-1shot", sealed=True, out=tmp_path)


def test_a_class_of_a_script_is_known_by_its_file(toy_registry, tmp_path):
    from toy_plugin import Means

    record = fsdil_bench.run(Means, "toy-1shot", registry=toy_registry, out=tmp_path)
    assert record.spec["method"] == "means"
    assert record.method["plugin"] == "toy_plugin.py"
    assert record.method["code"]["method"] == code_version(toy_registry.method("toy-means").factory)
