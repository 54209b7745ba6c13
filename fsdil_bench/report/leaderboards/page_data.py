"""What the page shows, as compact JSON types.

Accuracies have two decimals, and what many runs have in common (configs, machines, sizes) is in
`pool` once; elsewhere its position there. The same is said by `assets/data.js`, which reads it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.records.redaction import without_paths

from .columns import by_label
from .commands import reproduce
from .paper_columns import Comparison
from .text import number

_NOT_SHOWN = ("command", "time", "resumed_after")  # said elsewhere, or of no interest


class _Pool:
    """Values that occur often, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._known: dict[str, int] = {}

    def add(self, value: Any) -> int:
        """The position of a value."""
        text = json.dumps(value, sort_keys=True)
        if text not in self._known:
            self._known[text] = len(self.values)
            self.values.append(json.loads(text))  # with its keys sorted
        return self._known[text]


def page_data(
    sheets: Sequence[tuple[Sheet, Mapping[int, Sequence[Row]]]],
    stray: Sequence[Unfinished],
    comparisons: Sequence[Comparison],
) -> dict[str, Any]:
    """The content of the page's data element."""
    pool = _Pool()
    return {
        "metrics": list(METRICS),
        "sheets": [_sheet(sheet, rows, pool) for sheet, rows in sheets],
        "stray": [_unfinished(run) for run in stray],
        "paper": [_comparison(each) for each in comparisons],
        "pool": pool.values,  # filled by now
    }


def _sheet(sheet: Sheet, rows: Mapping[int, Sequence[Row]], pool: _Pool) -> dict[str, Any]:
    spec = sheet.first.spec
    options = {f"{key}": value for key, value in sorted(spec["scenario_options"].items())}
    if spec["base_limit"] is not None:
        options["base images per class, at most"] = spec["base_limit"]
    return {
        "name": sheet.name,
        "title": sheet.title,
        "backbone": sheet.backbone,
        "precision": spec["precision"],
        "options": options,
        "domains": sheet.domains,
        "tests": [domain["test"] for domain in sheet.first.scenario["domains"]],
        "classes": len(sheet.first.scenario["classes"]),
        "shots": list(rows),
        "scenarios": [board.scenario for board in sheet.boards],
        "rows": [_row(label, own, pool) for label, own in by_label(rows).items()],
    }


def _row(label: str, own: Mapping[int, Row], pool: _Pool) -> dict[str, Any]:
    first = next((row.records[0] for row in own.values() if row.records), None)
    about = first.method if first else {}
    return {
        "label": label,
        "summary": about.get("summary", ""),
        "paper": about.get("paper", ""),
        "free": all(row.exemplar_free for row in own.values()),
        **({"features": True} if any(row.keeps_features for row in own.values()) else {}),
        "config": pool.add(_config(own)),
        "code": pool.add(about.get("code", {})),
        "cells": {str(shots): _cell(row, pool) for shots, row in own.items()},
    }


def _config(own: Mapping[int, Row]) -> Any:
    row = next(iter(own.values()))
    return (row.records[0].spec if row.records else row.unfinished[0].spec)["config"]


def _cell(row: Row, pool: _Pool) -> dict[str, Any]:
    cell: dict[str, Any] = {"scores": [_score(row, metric) for metric in METRICS]}
    if row.missing_seeds:
        cell["missing"] = list(row.missing_seeds)
    if row.unfinished:
        cell["state"] = row.state()
        cell["unfinished"] = [_unfinished(run) for run in row.unfinished]
    if row.records:
        cell["cost"] = [_brief(value) for value in dataclasses.astuple(row.cost)]
        cell["command"] = reproduce(row.records)
        cell["runs"] = [
            _run(record, pool) for record in sorted(row.records, key=lambda r: r.spec["seed"])
        ]
    if row.audit:
        cell["audit"] = row.audit
    return cell


def _score(row: Row, metric: str) -> list[Any]:
    """Mean, deviation, ends of the interval, place, what the interval covers."""
    mean, std = row.scores[metric]
    standing = row.standings.get(metric)
    known = [_two(mean), _two(std)]
    if standing is None:
        return known
    return [*known, _two(standing.low), _two(standing.high), standing.place, standing.covers]


def _run(record: Record, pool: _Pool) -> dict[str, Any]:
    run: dict[str, Any] = {
        "seed": record.spec["seed"],
        "id": record.run_id,
        "matrix": _triangle(record.matrix),
        "cost": pool.add(
            {
                "trained parameters": record.cost["trained_parameters"],
                "state bytes": record.cost["state_bytes"],
            }
        ),
        "seconds": [
            _brief(each["seconds"].get(phase, 0.0))
            for phase in ("learn", "predict")
            for each in record.cost["per_domain"]
        ],
        "peak": record.cost["peak_memory_bytes"],
        "time": record.provenance.get("time", ""),
        "made": pool.add(_made(record)),
        "samples": record.scenario["digest"][:16],
    }
    if record.oracle_matrix:
        run["oracle"] = _triangle(record.oracle_matrix)
    if record.routing:
        run["routing"] = [_two(value) for value in record.routing]
    if record.unseen:
        run["unseen"] = {
            "names": pool.add(record.unseen["names"]),
            "rows": [[_two(value) for value in row] for row in record.unseen["matrix"]],
        }
    if record.sealed:
        run["sealed"] = 1
    return run


def _made(record: Record) -> dict[str, Any]:
    """With what and where a run was made, as far as it concerns others."""
    known = {key: value for key, value in record.provenance.items() if key not in _NOT_SHOWN}
    return {**without_paths(known), "weights": record.method["weights"]}


def _triangle(matrix: Iterable[Sequence[float]]) -> list[float | None]:
    """A[t, i] for i <= t, row by row."""
    return [_two(value) for t, row in enumerate(matrix) for value in row[: t + 1]]


def _unfinished(run: Unfinished) -> list[Any]:
    spec = run.spec
    return [spec["scenario"], spec["method"], spec["seed"], run.state, run.failure[:200]]


def _comparison(each: Comparison) -> list[Any]:
    return [
        each.dataset, each.shots, each.metric, each.label, each.sheet, each.reported,
        _two(each.measured), _two(each.std), _two(each.difference), each.case, each.verdict,
    ]  # fmt: skip


def _two(value: float | None) -> float | None:
    return None if value is None else round(value, 2) + 0.0  # never -0.0


def _brief(value: float) -> float | int:
    """Four digits, as an integer where it is one."""
    short = number(float(f"{value:.4g}")) if isinstance(value, float) else value
    return int(short) if short == int(short) else short
