"""examples/quickstart.ipynb runs from top to bottom, and what it shows is worth seeing."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
FILE = ROOT / "examples" / "quickstart.ipynb"


def read():
    return nbformat.read(FILE, as_version=4)


@pytest.fixture(scope="module")
def executed(drawn_cache, tmp_path_factory):
    """The notebook after a run in an empty folder."""
    notebook = read()
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    NotebookClient(notebook, timeout=300, resources=place).execute()
    return notebook


def outputs(notebook, kind):
    """All outputs of a kind, by the code of their cell."""
    return {
        cell.source: output.data[kind]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if kind in output.get("data", {})
    }


def test_it_is_kept_without_outputs():
    """Outputs are what the test makes; in the file they would be out of date, and large."""
    notebook = read()
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    text = FILE.read_text(encoding="utf-8")
    assert text == nbformat.writes(notebook) + "\n"


def test_a_record_shows_its_matrix_and_scores(executed):
    shown = outputs(executed, "text/html")[
        'import fsdil_bench\n\nfsdil_bench.run("ncm", "drawn-1shot")'
    ]
    assert "<strong>ncm on drawn-1shot, tiny-clip, seed 0</strong>" in shown
    for name in ("quickdraw", "infograph", "AA*", "FA*"):
        assert name in shown
    assert len(re.findall(r"background:rgba\(", shown)) == 6 * 7 / 2


def test_boards_and_comparisons_are_tables(executed):
    shown = outputs(executed, "text/html")
    [board] = [html for code, html in shown.items() if "load_boards" in code and "own" in code]
    assert all(f">{name}" in board for name in ("zero-shot", "ncm", "names-and-images"))
    [comparison] = [html for code, html in shown.items() if "compare(" in code]
    assert "zero-shot is better than ncm by" in comparison


def test_pictures_are_pictures(executed):
    pictures = outputs(executed, "image/png")
    assert len(pictures) == 2
    assert all(base64.b64decode(p).startswith(b"\x89PNG") for p in pictures.values())


def test_nothing_floods_a_cell(executed):
    """A run leaves one line, and libraries say nothing."""
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            assert output.get("name") != "stderr", text
            assert len(text.splitlines()) < 30
    [line] = [
        output.data["text/plain"]
        for output in executed.cells[2].outputs
        if output.output_type == "display_data"
    ]
    assert re.fullmatch(r"ncm on drawn-1shot, seed 0: \d+\.\d s", line)


def test_its_links_lead_somewhere():
    for cell in read().cells:
        for target in re.findall(r"\]\(([^)#]+)", cell.source if cell.cell_type != "code" else ""):
            assert (FILE.parent / target).exists(), target
