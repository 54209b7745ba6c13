"""Boards for programs: a CSV file per board, and all of them in one JSON file."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS

from .commands import reproduce
from .paper_columns import Comparison
from .text import number

SCHEMA = 1


def board_csv(board: Board, rows: Sequence[Row]) -> str:
    """A line per row; empty where there is no value."""
    lines = [_line(row, board, rows) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def all_json(
    sheets: Sequence[tuple[Sheet, Mapping[int, Sequence[Row]]]],
    stray: Sequence[Unfinished],
    comparisons: Sequence[Comparison],
) -> str:
    """Everything on the boards; the records themselves are elsewhere, by their run ids."""
    values = {
        "schema": SCHEMA,
        "boards": [
            _board(sheet, board, rows[board.shots])
            for sheet, rows in sheets
            for board in sheet.boards
        ],
        "unfinished": [_unfinished(run) for run in stray],
        "paper": [
            {name: _value(value) for name, value in dataclasses.asdict(each).items()}
            for each in comparisons
        ],
    }
    return json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _line(row: Row, board: Board, rows: Sequence[Row]) -> dict[str, Any]:
    # A label that begins like a formula would be one in a spreadsheet.
    formula = row.label.startswith(("=", "+", "-", "@"))
    line: dict[str, Any] = {"method": f"'{row.label}" if formula else row.label}
    for metric in METRICS:
        line[metric], line[f"{metric} std"] = row.scores[metric]
    line |= {"AA* oracle": row.oracle, "routing": row.routing, "seeds": len(row.records)}
    cost = row.cost if row.records else None
    line |= {
        "learn s": cost and cost.learn_seconds,
        "learn s/img": cost and cost.learn_per_image,
        "predict s/img": cost and cost.predict_per_image,
        "trained parameters": cost and cost.trained_parameters,
        "state bytes": cost and cost.state_bytes,
        "peak memory bytes": cost and cost.peak_memory_bytes,
        "exemplar free": row.exemplar_free if row.records else None,
        "run ids": " ".join(sorted(record.run_id for record in row.records)),
    }
    if any(record.unseen for record in board.records):
        line["unseen"], line["unseen std"] = row.unseen
    if any(each.head for each in rows):
        line["head"] = row.head
    if any(each.sealed for each in rows):
        line["sealed"] = row.sealed
    if any(each.audit for each in rows):
        line["audit"] = row.audit
    if any(each.keeps_features for each in rows):
        line["keeps features"] = row.keeps_features if row.records else None
    for metric in METRICS:
        standing = row.standings.get(metric)
        line[f"{metric} low"] = standing and standing.low
        line[f"{metric} high"] = standing and standing.high
        line[f"{metric} place"] = standing and standing.place
    line["seed list"] = " ".join(map(str, row.seeds))
    line["missing seeds"] = " ".join(map(str, row.missing_seeds))
    for state in ("incomplete", "failed"):
        line[state] = sum(run.state == state for run in row.unfinished)
    return {name: _value(value) for name, value in line.items()}


def _board(sheet: Sheet, board: Board, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "name": board.name,
        "sheet": sheet.name,
        "scenario": board.scenario,
        "dataset": sheet.dataset,
        "variant": sheet.variant,
        "shots": board.shots,
        "backbone": board.backbone,
        "apart": {k: v for k, v in json.loads(sheet.apart).items() if k != "classes"},
        "domains": sheet.domains,
        "seeds": board.seeds,
        "rows": [_row(row) for row in rows],
    }


def _row(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {
        "label": row.label,
        "method": row.method,
        "seeds": row.seeds,
        "missing_seeds": list(row.missing_seeds),
        "run_ids": sorted(record.run_id for record in row.records),
        "unfinished": [_unfinished(run) for run in row.unfinished],
        "scores": {metric: _score(row, metric) for metric in METRICS},
    }
    if row.records:
        first = row.records[0]
        values |= {
            "summary": first.method.get("summary", ""),
            "paper": first.method.get("paper", ""),
            "config": first.spec["config"],
            "code": first.method["code"],
            "exemplar_free": row.exemplar_free,
            **({"keeps_features": True} if row.keeps_features else {}),
            "sealed": row.sealed,
            "audit": row.audit,
            "oracle": _value(row.oracle),
            "routing": _value(row.routing),
            "unseen": [_value(value) for value in row.unseen],
            "cost": {k: _value(v) for k, v in dataclasses.asdict(row.cost).items()},
            "command": reproduce(row.records),
        }
    return values


def _score(row: Row, metric: str) -> dict[str, Any]:
    mean, std = row.scores[metric]
    standing = row.standings.get(metric)
    return {"mean": _value(mean), "std": _value(std)} | (
        dataclasses.asdict(standing) if standing else {}
    )


def _unfinished(run: Unfinished) -> dict[str, Any]:
    known = {name: run.spec[name] for name in ("scenario", "method", "seed", "backbone")}
    return known | {"run_id": run.run_id, "state": run.state, "failure": run.failure}


def _value(value: Any) -> Any:
    return number(value) if isinstance(value, float) else value
