"""Write boards in all formats, and copy the records they are made from."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fsdil_bench.analysis.boards import Sheet, make_sheets
from fsdil_bench.analysis.grouping import safe_name
from fsdil_bench.analysis.orders import make_order_boards
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.records.identity import SEALED_SUFFIX
from fsdil_bench.records.record import PREDICTIONS_FILE, RECORD_FILE, Record
from fsdil_bench.records.verdict_file import read_verdict, save_verdict
from fsdil_bench.system.atomic_files import write_atomically

from .csv_json import all_json, board_csv
from .latex import latex
from .markdown import board_page, index_page, paper_page, sheet_page
from .orders import index_lines, order_files
from .page import page
from .paper_lines import make_paper_lines
from .thumbnails import FOLDER, write_thumbnails

_VALUES = "leaderboards.json"


def write_leaderboards(
    records: Sequence[Record],
    out: str | Path,
    unfinished: Sequence[Unfinished] = (),
    registry: Registry | None = None,
    thumbnails: bool = False,
    tell: Callable[[str], None] = warnings.warn,
    title: str = "",
) -> list[Path]:
    """Write all boards and an index `README.md` below `out`; returns the files.

    Boards that an earlier call wrote there and whose records are gone are removed.
    `unfinished` are runs without a record (`find_unfinished`), which boards show as such.
    `registry` knows the default options of the methods, to see which were changed by hand.
    With `thumbnails` the page shows pictures of test images, of scenarios that compute them; `tell`
    is called with the reason where that is not possible. `title` is the heading of the index and of
    the page.
    """
    sheets = make_sheets(records, unfinished)
    stray = stray_runs(sheets, records, unfinished)
    paper_lines = make_paper_lines(sheets, registry)
    order_boards = make_order_boards(records)
    folder = Path(out)
    drawn = {}
    if thumbnails:
        drawn = write_thumbnails(sheets, folder, registry or load_registry(), tell)
    files = {
        "README.md": index_page(sheets, stray, paper_lines, title) + index_lines(order_boards),
        "index.html": page(sheets, stray, paper_lines, drawn, title),
        _VALUES: all_json(sheets, stray, paper_lines),
        "paper.md": paper_page(paper_lines),
    }
    for sheet in sheets:
        own = [line for line in paper_lines if line.sheet == sheet.name]
        files[f"{sheet.name}.md"] = sheet_page(sheet, own)
        files[f"{sheet.name}.tex"] = latex(sheet)
        for board in sheet.boards:
            files[f"{board.name}.md"] = board_page(sheet, board)
            files[f"{board.name}.csv"] = board_csv(board)
    files |= order_files(order_boards)
    folder.mkdir(parents=True, exist_ok=True)
    for old in _files_of_gone_boards(folder, sheets):
        old.unlink(missing_ok=True)
    for name, text in files.items():
        write_atomically(folder / name, text)
    return [folder / name for name in (*files, *(each.file for each in drawn.values()))]


def _files_of_gone_boards(folder: Path, sheets: Sequence[Sheet]) -> Iterator[Path]:
    """What an earlier call wrote, by its own list, for boards that are no more."""
    now = {sheet.name for sheet in sheets} | {b.name for sheet in sheets for b in sheet.boards}
    try:
        values = json.loads((folder / _VALUES).read_text(encoding="utf-8"))
        gone = {str(board[key]) for board in values["boards"] for key in ("sheet", "name")} - now
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in sorted(gone):
        if re.fullmatch(r"[A-Za-z0-9._+-]+_[0-9a-f]{6}", name):  # the list may come from anybody
            yield from (folder / f"{name}.{kind}" for kind in ("md", "csv", "tex"))
            yield from (folder / FOLDER).glob(f"{name}-??????.webp")


def stray_runs(
    sheets: Sequence[Sheet], records: Sequence[Record], unfinished: Sequence[Unfinished]
) -> list[Unfinished]:
    """The unfinished runs that have a place on no sheet."""
    known = {run.run_id for sheet in sheets for row in sheet.rows for run in row.unfinished}
    known |= {record.run_id for record in records}
    return [run for run in unfinished if run.run_id not in known]


def copy_records(records: Sequence[Record], out: str | Path) -> None:
    """Copy records and predictions (no checkpoints) below `out`/records, to publish with boards."""
    for record in records:
        assert record.folder is not None
        scenario, method = safe_name(record.spec["scenario"]), safe_name(record.spec["method"])
        name = f"seed{int(record.seed)}-{safe_name(record.run_id)}"
        name += SEALED_SUFFIX if record.sealed else ""
        target = Path(out) / "records" / scenario / method / name
        if target.resolve() != record.folder.resolve():
            target.mkdir(parents=True, exist_ok=True)
            for file in (PREDICTIONS_FILE, RECORD_FILE):  # the record last: it says "complete"
                shutil.copyfile(record.folder / file, target / file)
            if verdict := read_verdict(record):
                save_verdict(replace(record, folder=target), verdict)
