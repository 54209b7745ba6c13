"""Boards for programs: a CSV file per board, and all of them in one JSON file."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.unfinished import Unfinished

from .columns import CSV, json_row, json_unfinished, json_value, table_of
from .paper_lines import PaperLine

SCHEMA = 1


def board_csv(board: Board) -> str:
    """A line per row; empty where there is no value."""
    headings, cells = table_of(board, CSV)
    # The same on every line: a table has no other place for what is about the whole board.
    headings += [f"{metric} smallest difference" for metric in board.standing]
    smallest = [found.smallest_difference for found in board.standing.values()]
    cells = [[*line, *smallest] for line in cells]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([json_value(value) for value in line] for line in cells)
    return text.getvalue()


def all_json(
    sheets: Sequence[Sheet], stray: Sequence[Unfinished], paper_lines: Sequence[PaperLine]
) -> str:
    """Everything on the boards; the records themselves are elsewhere, by their run ids."""
    values = {
        "schema": SCHEMA,
        "boards": [_board(sheet, board) for sheet in sheets for board in sheet.boards],
        "unfinished": [json_unfinished(run) for run in stray],
        "paper": [_paper_line(line) for line in paper_lines],
    }
    return json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _paper_line(line: PaperLine) -> dict[str, Any]:
    verdict = {name: json_value(value) for name, value in dataclasses.asdict(line.verdict).items()}
    return {
        "dataset": line.dataset,
        "shots": line.shots,
        "metric": line.metric,
        "method": line.method,
        "label": line.label,
        "sheet": line.sheet,
        "reported": {"mean": line.reported.mean, "std": line.reported.std},
        "measured": json_value(line.measured),
        "std": json_value(line.std),
        **verdict,
    }


def _board(sheet: Sheet, board: Board) -> dict[str, Any]:
    conditions = json.loads(board.key.conditions)
    return {
        "name": board.name,
        "sheet": sheet.name,
        "scenario": board.key.scenario,
        "dataset": sheet.key.dataset,
        "variant": sheet.key.variant,
        "shots": board.shots,
        "backbone": board.key.backbone,
        "apart": {name: value for name, value in conditions.items() if name != "classes"},
        "domains": sheet.first.domain_names,
        "seeds": board.seeds,
        "standing": {metric: found.verdicts for metric, found in board.standing.items()},
        "smallest_difference": {
            metric: json_value(found.smallest_difference)
            for metric, found in board.standing.items()
        },
        "rows": [json_row(row) for row in board.rows],
    }
