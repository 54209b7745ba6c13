"""Who may import whom: the picture in docs/architecture.md, held true.

The folders of `fsdil_bench` lie in layers. A module imports its own folder and the folders below
it, at the top of a file or inside a function. Imports for type hints alone (`TYPE_CHECKING`) are
free: they do nothing when the program runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fsdil_bench

HARNESS = Path(fsdil_bench.__file__).parent

#: From the bottom to the top. Folders in one line do not import each other.
LAYERS = (
    ("exit_codes",),
    ("errors",),
    ("adapters", "progress", "seeds", "shown"),
    ("system",),
    ("plugins",),
    ("cache",),
    ("data",),
    ("models",),
    ("records",),
    ("runs",),
    ("analysis", "avalanche", "checks", "forecast"),
    ("report", "sweeps", "trackers"),
    ("view",),
    ("cli",),
    ("__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return [path for path in sorted(HARNESS.rglob("*.py")) if "templates" not in path.parts]


def part(path: Path) -> str:
    """The folder, or the file, directly in the harness."""
    return path.relative_to(HARNESS).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports that happen when the program runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:
            yield from imports(node)


def imported_parts(path: Path) -> set[str]:
    package = ["fsdil_bench", *path.relative_to(HARNESS).parts[:-1]]
    found = set()
    for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            start = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            names = [origin]
            if origin == "fsdil_bench":
                names = [f"{origin}.{alias.name}" for alias in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            if top == "fsdil_bench":
                found.add(rest.partition(".")[0] or "__init__")
    return found


def test_every_part_has_its_layer():
    assert {part(path) for path in modules()} == set(LEVEL)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(HARNESS)))
def test_imports_point_downwards(path):
    own = part(path)
    wrong = [
        other
        for other in imported_parts(path) - {own}
        if other in LEVEL and LEVEL[other] >= LEVEL[own]
    ]
    assert not wrong, f"{own} must not import {', '.join(sorted(wrong))}"


@pytest.mark.parametrize("folder", sorted({path.parent for path in modules()} - {HARNESS}), ids=str)
def test_every_folder_says_what_lives_there(folder):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert text, f"{folder.name}/__init__.py says nothing"
    assert len(text.splitlines()) >= 2


def test_a_dot_means_the_same_folder():
    """Imports from other folders are absolute, so that a reader sees the layer they come from."""
    for path in modules():
        for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level < 2, f"{path.relative_to(HARNESS)}:{node.lineno}"
