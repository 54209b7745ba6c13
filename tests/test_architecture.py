"""docs/architecture.md says what is true of types and layers, and no page names a lost file."""

from __future__ import annotations

import re

import doc_blocks as docs
import pytest
from test_layers import HARNESS, LAYERS

PAGE = (docs.ROOT / "docs/architecture.md").read_text(encoding="utf-8")
TOPS = "fsdil_bench|methods|scenarios|tests|benchmarks|examples|sweeps|leaderboards|docs"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def table(text: str) -> list[list[str]]:
    """The cells of all rows below the rules of tables."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [row for i, row in enumerate(rows) if i > 1 and "---" not in row[0]]


def paths(text: str) -> list[str]:
    return re.findall(rf"`((?:{TOPS})/[\w./-]*)`", text)


@pytest.mark.parametrize("page", docs.PAGES)
def test_every_path_is_there(page):
    text = (docs.ROOT / page).read_text(encoding="utf-8")
    missing = [path for path in paths(text) if not (docs.ROOT / path).exists()]
    assert not missing or page == "CHANGELOG.md", "say where these things are now"


@pytest.mark.parametrize("page", ["docs/baselines.md", "docs/cvlc.md"])
def test_files_of_methods_are_there(page):
    named = re.findall(r"`(\w+\.py)`", (docs.ROOT / page).read_text(encoding="utf-8"))
    there = {path.name for path in (docs.ROOT / "methods").rglob("*.py")}
    assert named
    assert not set(named) - there


def test_every_answer_names_a_path():
    asked = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", section("Where is ...?"), re.MULTILINE)
    assert len(asked) >= 20
    assert not [question for question, answer in asked if not paths(answer)]


def test_the_table_of_layers_is_the_one_that_is_tested():
    rows = table(section("Who may import whom"))
    told = [tuple(re.findall(r"`(\w+)`", row[1])) for row in rows]
    assert tuple(reversed(told)) == LAYERS
    assert [int(row[0]) for row in rows] == [*range(len(LAYERS))][::-1]


def test_every_folder_is_described():
    folders = {path.parent for path in HARNESS.glob("*/__init__.py")}
    described = set(paths(section("Folders")))
    assert {f"fsdil_bench/{folder.name}/" for folder in folders} <= described


BORDERS = [row for row in table(section("The way of a run")) if len(row) == 4]


@pytest.mark.parametrize("row", BORDERS, ids=lambda row: f"{row[0]} to {row[1]}")
def test_what_crosses_a_border_is_defined_there(row):
    code = "".join((docs.ROOT / path).read_text(encoding="utf-8") for path in paths(row[3]))
    for name in re.findall(r"`(\w+)`", row[2]):
        assert re.search(rf"^(?:class|def) {name}\b", code, re.MULTILINE), name
