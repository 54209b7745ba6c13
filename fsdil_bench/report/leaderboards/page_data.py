"""What the page shows, as compact JSON types.

Accuracies have two decimals. Values that many runs share (options, machines, sizes) are stored once
in `pool`; elsewhere stands their position in it. `assets/data.js` reads all of this.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.flips import packed, right_at_the_end, runs_of
from fsdil_bench.analysis.routing import routing_confusion
from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.statistics.outcomes import has_predictions
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.records.redaction import without_paths

from .commands import reproduce
from .formatting import number
from .paper_lines import PaperLine
from .thumbnails import COLUMNS, SIDE, Thumbnails

_NOT_SHOWN = ("command", "time", "resumed_after")  # shown elsewhere, or of no interest

#: Boards with more test images are not compared image by image: each run needs a bit for each.
MOST_IMAGES = 60_000
#: With more domains, the page shows what a router chose after the last domain alone.
MOST_DOMAINS = 12


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
    sheets: Sequence[Sheet],
    stray: Sequence[Unfinished],
    paper_lines: Sequence[PaperLine],
    thumbnails: Mapping[str, Thumbnails],
) -> dict[str, Any]:
    """The content of the page's data element."""
    pool = _Pool()
    return {
        "metrics": list(METRICS),
        "sheets": [_sheet(sheet, thumbnails.get(sheet.name), pool) for sheet in sheets],
        "stray": [_unfinished(run) for run in stray],
        "paper": [_paper_line(line) for line in paper_lines],
        "pool": pool.values,  # filled by now
    }


def _sheet(sheet: Sheet, thumbnails: Thumbnails | None, pool: _Pool) -> dict[str, Any]:
    spec = sheet.first.spec
    options = {f"{key}": value for key, value in sorted(spec["scenario_options"].items())}
    if spec["base_limit"] is not None:
        options["base images per class, at most"] = spec["base_limit"]
    return {
        "name": sheet.name,
        "title": sheet.key.title,
        "backbone": sheet.key.backbone,
        "precision": spec["precision"],
        "options": options,
        "domains": sheet.first.domain_names,
        "tests": sheet.first.test_counts,
        "classes": sheet.first.scenario["classes"],
        **_images(sheet, thumbnails),
        "shots": sheet.shots,
        "scenarios": [board.key.scenario for board in sheet.boards],
        "smallest_difference": [
            {metric: _two(found.smallest_difference) for metric, found in board.standing.items()}
            for board in sheet.boards
        ],
        "rows": [_row(label, own, pool) for label, own in sheet.rows_by_label().items()],
    }


def _images(sheet: Sheet, thumbnails: Thumbnails | None) -> dict[str, Any]:
    """What is needed to compare runs image by image: the labels, and pictures of some images."""
    known = next((r for row in sheet.rows for r in row.records if has_predictions([r])), None)
    if known is None or sum(known.test_counts) > MOST_IMAGES:
        return {}
    images: dict[str, Any] = {"labels": runs_of(known.predictions()["labels"])}
    if thumbnails:
        images["thumbnails"] = {
            "file": thumbnails.file,
            "side": SIDE,
            "columns": COLUMNS,
            "images": thumbnails.images,
            "ids": thumbnails.ids,
        }
    return images


def _row(label: str, own: Mapping[int, Row], pool: _Pool) -> dict[str, Any]:
    first = next((row.records[0] for row in own.values() if row.records), None)
    about = first.method if first else {}
    return {
        "label": label,
        "summary": about.get("summary", ""),
        "paper": about.get("paper", ""),
        "free": all(row.exemplar_free for row in own.values()),
        **({"features": True} if any(row.keeps_features for row in own.values()) else {}),
        **({"third": True} if any(row.third_party for row in own.values()) else {}),
        "config": pool.add(next(iter(own.values())).key.options),
        "code": pool.add(about.get("code", {})),
        "cells": {str(shots): _cell(row, pool) for shots, row in own.items()},
    }


def _cell(row: Row, pool: _Pool) -> dict[str, Any]:
    cell: dict[str, Any] = {"scores": [_score(row, metric) for metric in METRICS]}
    if row.missing_seeds:
        cell["missing"] = list(row.missing_seeds)
    if row.unfinished:
        cell["state"] = row.unfinished_states()
        cell["unfinished"] = [_unfinished(run) for run in row.unfinished]
    if row.records:
        cell["cost"] = [_brief(value) for value in dataclasses.astuple(row.cost)]
        cell["command"] = reproduce(row.records)
        cell["runs"] = [_run(record, pool) for record in sorted(row.records, key=lambda r: r.seed)]
    if row.audit:
        cell["audit"] = row.audit
    return cell | _evidence(row)


def _evidence(row: Row) -> dict[str, Any]:
    """Who ran it again, and what speaks against it."""
    found: dict[str, Any] = {}
    if verified := row.verified:
        found["verified"] = [verified.outcome, verified.who, verified.when, verified.version]
    if row.differs_from_ordinary:
        found["differs"] = list(row.differences)
    if row.suspicions:
        found["suspicions"] = row.suspicions
    return found


def _score(row: Row, metric: str) -> list[Any]:
    """Mean, deviation, ends of the interval, place, what the interval covers."""
    found = row.scores[metric]
    known = [_two(found.mean), _two(found.std)]
    if not row.records:
        return known
    return [
        *known,
        _two(found.low),
        _two(found.high),
        found.place,
        found.covers,
    ]


def _run(record: Record, pool: _Pool) -> dict[str, Any]:
    run: dict[str, Any] = {
        "seed": record.seed,
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
    if confusion := routing_confusion(record):
        shown = confusion if len(confusion) <= MOST_DOMAINS else confusion[-1:]
        run["confusion"] = [_one(value) for each in shown for value in each.ravel().tolist()]
    if sum(record.test_counts) <= MOST_IMAGES:
        right = right_at_the_end(record)
        run |= {} if right is None else {"right": packed(right)}
    if record.unseen:
        run["unseen"] = {
            "names": pool.add(record.unseen["names"]),
            "rows": [[_two(value) for value in row] for row in record.unseen["matrix"]],
        }
    if record.sealed:
        run["sealed"] = 1
    return run


def _made(record: Record) -> dict[str, Any]:
    """With what and where a run was made, without private folders."""
    known = {key: value for key, value in record.provenance.items() if key not in _NOT_SHOWN}
    return {**without_paths(known), "weights": record.method["weights"]}


def _triangle(matrix: Iterable[Sequence[float]]) -> list[float | None]:
    """A[t, i] for i <= t, row by row."""
    return [_two(value) for t, row in enumerate(matrix) for value in row[: t + 1]]


def _unfinished(run: Unfinished) -> list[Any]:
    spec = run.spec
    return [spec["scenario"], spec["method"], spec["seed"], run.state, run.failure[:200]]


def _paper_line(line: PaperLine) -> list[Any]:
    return [
        line.dataset, line.shots, line.metric, line.label, line.sheet, str(line.reported),
        _two(line.measured), _two(line.std), _two(line.verdict.difference), str(line.verdict.case),
        str(line.verdict),
    ]  # fmt: skip


def _two(value: float | None) -> float | None:
    return None if value is None else round(value, 2) + 0.0  # never -0.0


def _one(value: float) -> float | int:
    """One decimal, as an integer where it is one."""
    short = round(value, 1)
    return int(short) if short == int(short) else short


def _brief(value: float) -> float | int:
    """Four digits, as an integer where it is one."""
    short = number(float(f"{value:.4g}")) if isinstance(value, float) else value
    return int(short) if short == int(short) else short
