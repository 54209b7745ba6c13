"""The boards of real images come from their records, and the page has their numbers."""

from __future__ import annotations

import json
import runpy

import doc_blocks as docs
import pytest

from fsdil_bench import find_records
from fsdil_bench.report.leaderboards import write_leaderboards

SCRIPT = runpy.run_path(str(docs.ROOT / "docs/make_real_images.py"))
BOARDS = docs.ROOT / "leaderboards" / "real-images"
TITLE = "Real images, distilled text tower"


def test_the_tables_are_current():
    page = (docs.ROOT / "docs/real-images.md").read_text(encoding="utf-8")
    begin, end = SCRIPT["BEGIN"], SCRIPT["END"]
    made = page.partition(begin)[2].partition(end)[0].strip()
    assert made == SCRIPT["tables"](), "run: python docs/make_real_images.py"
    assert TITLE in page


@pytest.mark.parametrize(
    ("method", "label", "config", "shown"),
    [
        ("ncm", "ncm", {}, "ncm"),
        ("tip-adapter", "tip-adapter [12ab]", {"views": 0, "templates": ["{}"]}, "tip-adapter"),
        ("coop", "coop [12ab]", {"steps": 9}, "coop"),
        ("cvlc", "cvlc [12ab]", {"mode": "paper", "templates": ["{}"]}, "cvlc"),
        ("cvlc", "cvlc [34cd]", {"mode": "authors"}, "cvlc, authors' mode"),
        ("zero-shot", "zero-shot [12ab]", {"templates": ["{}"]}, "zero-shot, “{}”"),
        ("zero-shot", "zero-shot [34cd]", {"templates": ["{}", "a {}"]}, "zero-shot, 2 templates"),
    ],
)
def test_rows_say_how_they_differ(method, label, config, shown):
    assert SCRIPT["name_of"]({"method": method, "label": label, "config": config}) == shown


def test_rows_have_the_marks_of_their_board():
    boards = json.loads((BOARDS / "leaderboards.json").read_text(encoding="utf-8"))["boards"]
    found = {}
    for row in (row for board in boards for row in board["rows"]):
        number = SCRIPT["with_spread"](row["scores"]["AA*"])
        found.setdefault(row["scores"]["AA*"]["place"], set()).add(
            SCRIPT["cells"](row)[1].replace(number, "")
        )
    wanted = {"best": {"****"}, "tied": {" ≈"}, "undecided": {" ?"}, "behind": {""}}
    assert found == {place: wanted[place] for place in found}
    assert {"best", "tied", "behind"} <= found.keys()


def test_cvlc_is_compared_with_every_other_method_of_its_board():
    boards = json.loads((BOARDS / "leaderboards.json").read_text(encoding="utf-8"))["boards"]
    known = {record.run_id: record for record in find_records(BOARDS / "records")}
    compared = 0
    for board in boards:
        scores = {
            SCRIPT["escape_markdown"](SCRIPT["name_of"](row)): row["scores"]["AA*"]["mean"]
            for row in board["rows"]
        }
        cells = SCRIPT["differences"](board, known)
        assert cells.keys() == (scores.keys() - {"cvlc"} if "cvlc" in scores else set())
        for name, cell in cells.items():
            found = cell.replace("−", "-").replace("*", "").split()
            assert float(found[0]) == pytest.approx(scores["cvlc"] - scores[name], abs=0.051)
            assert float(found[1].strip("(")) <= float(found[0]) <= float(found[3].strip(")"))
        compared += len(cells)
    assert compared


def test_the_boards_come_from_their_records_and_say_what_is_special(tmp_path):
    write_leaderboards(find_records(BOARDS / "records"), tmp_path, title=TITLE)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert made == {p.name: p.read_bytes() for p in BOARDS.iterdir() if p.is_file()}
    assert TITLE in made["README.md"].decode()
    assert TITLE in made["index.html"].decode()


def test_every_record_has_the_distilled_tower():
    records = find_records(BOARDS / "records", strict=True)
    assert records
    for record in records:
        image, text = (record.method["backbone"][side]["from"] for side in ("image", "text"))
        assert (image, text) == ("openai-visual.safetensors", "distilled-text.safetensors")
