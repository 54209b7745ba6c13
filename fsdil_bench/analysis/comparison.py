"""What two methods do differently, in full: scores, domains, images, routing and cost.

`full_comparison` gathers it from records; the numbers behind "which is better" and how sure that is
are those of `fsdil_bench.analysis.statistics`. Differences are A minus B.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from fsdil_bench.errors import RequestError
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record

from .statistics import (
    Comparison,
    Interval,
    check_comparable,
    compare,
    correct,
    difference_of,
    holm,
    shared_seeds,
    weights_of,
)

_MOST_CLASSES = 5


@dataclass(frozen=True)
class Difference:
    """One quantity of both, in percent (mean over the shared seeds), and what is known of it."""

    name: str
    a: float
    b: float
    difference: float
    interval: Interval
    p: float
    told_apart: bool


@dataclass(frozen=True)
class Decided:
    """Images on which the two differ after the last domain, per seed on average."""

    name: str
    images: int
    only_a: float
    only_b: float


@dataclass(frozen=True)
class FullComparison:
    """Everything `fsdil-bench compare` shows.

    `domains` are accuracies after the last domain, told apart with Holm's correction for their
    number. `deciding` counts images overall, per domain, and for the classes that matter most.
    `routing` is None unless both methods route. `notes` name what else sets the runs apart.
    """

    overall: Comparison
    scores: list[Difference]
    domains: list[Difference]
    deciding: dict[str, list[Decided]]
    routing: dict[str, float] | None
    cost: dict[str, tuple[float, float]]
    notes: list[str]


def full_comparison(
    a: Sequence[Record], b: Sequence[Record], metric: str = "AA*", level: float = 0.95
) -> FullComparison:
    """Compare the runs of two methods on one board."""
    overall = compare(a, b, metric, level)
    ours, theirs = shared_seeds(a, b)
    return FullComparison(
        overall,
        _scores(ours, theirs, level),
        _domains(ours, theirs, level),
        _deciding(ours, theirs),
        _routing(ours, theirs),
        _cost(ours, theirs),
        _notes(a, b),
    )


def boards_of(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """Records by scenario and backbone, then by method (by its settings too, where a board has it
    with several); refused where a board would hold what does not compare."""
    boards: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:  # a run that is there twice counts once
        boards[f"{record.spec['scenario']}, {record.spec['backbone']}"][record.run_id] = record
    for name, found in boards.items():
        first, *others = found.values()
        for other in others:
            check_comparable(first, other)
            for key in ("precision", "base_limit", "scenario_options"):
                if first.spec[key] != other.spec[key]:
                    raise RequestError(
                        f"runs of {name} differ in {key.replace('_', ' ')}: "
                        f"{first.spec[key]} and {other.spec[key]}",
                        "Give folders with runs that were made alike.",
                    )
    return {name: _rows(list(found.values())) for name, found in sorted(boards.items())}


def _rows(records: list[Record]) -> dict[str, list[Record]]:
    settings: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        told_apart = json.dumps([record.spec["config"], record.method["code"]], sort_keys=True)
        settings[record.spec["method"]][told_apart].append(record)
    rows = {}
    for method, found in settings.items():
        for told_apart, members in found.items():
            mark = hashlib.blake2b(told_apart.encode(), digest_size=2).hexdigest()
            rows[method if len(found) == 1 else f"{method} [{mark}]"] = members
    return rows


def _scores(a: list[Record], b: list[Record], level: float) -> list[Difference]:
    counts = [domain["test"] for domain in a[0].scenario["domains"]]
    known = {name: weights_of(name, counts) for name in METRICS}
    found = [
        _difference(name, weights, a, b, level)
        for name, weights in known.items()
        if weights is not None
    ]
    return [_judged(each, each.p < 1 - level) for each in found]


def _domains(a: list[Record], b: list[Record], level: float) -> list[Difference]:
    names = [domain["name"] for domain in a[0].scenario["domains"]]
    found = []
    for i, name in enumerate(names):
        weights = np.zeros((len(names), len(names)))
        weights[-1, i] = 1
        found.append(_difference(name, weights, a, b, level))
    apart = holm([each.p for each in found], 1 - level)
    return [_judged(each, told) for each, told in zip(found, apart, strict=True)]


def _difference(
    name: str, weights: np.ndarray, a: list[Record], b: list[Record], level: float
) -> Difference:
    found = difference_of(a, b, weights)
    ours, theirs = (fmean(_weighted(r, weights) for r in records) for records in (a, b))
    return Difference(name, ours, theirs, found.mean, found.interval(level), found.p_value(), False)


def _weighted(record: Record, weights: np.ndarray) -> float:
    return sum(
        float(np.dot(row[: t + 1], weights[t, : t + 1])) for t, row in enumerate(record.matrix)
    )


def _judged(found: Difference, told_apart: bool) -> Difference:
    return Difference(**(vars(found) | {"told_apart": told_apart}))


def _deciding(a: list[Record], b: list[Record]) -> dict[str, list[Decided]]:
    right = np.stack([correct(record)[-1] for record in a])
    other = np.stack([correct(record)[-1] for record in b])
    only_a, only_b = (right & ~other).mean(0), (other & ~right).mean(0)
    arrays = a[0].predictions()
    classes = a[0].scenario["classes"]
    domains = [domain["name"] for domain in a[0].scenario["domains"]]

    def count(groups: np.ndarray, names: Sequence[str]) -> list[Decided]:
        images, won, lost = (
            np.bincount(groups, weights, len(names)) for weights in (None, only_a, only_b)
        )
        return [
            Decided(name, int(images[i]), float(won[i]), float(lost[i]))
            for i, name in enumerate(names)
        ]

    by_class = count(arrays["labels"], classes)
    by_class.sort(key=lambda each: (-abs(each.only_a - each.only_b), each.name))
    return {
        "overall": count(np.zeros(len(only_a), dtype=int), ["all"]),
        "domains": count(arrays["domains"], domains),
        "classes": by_class[:_MOST_CLASSES],
    }


def _routing(a: list[Record], b: list[Record]) -> dict[str, float] | None:
    """After the last domain, in percent: who routes to the right domain, and how often alike."""
    if not all(record.routing for record in (*a, *b)):
        return None
    last = f"routed_{len(a[0].matrix) - 1}"
    alike = [
        float((ours.predictions()[last] == theirs.predictions()[last]).mean())
        for ours, theirs in zip(a, b, strict=True)
    ]
    right_a, right_b = (fmean((r.routing or [0.0])[-1] for r in records) for records in (a, b))
    return {"a": right_a, "b": right_b, "alike": 100 * fmean(alike)}


def _cost(a: list[Record], b: list[Record]) -> dict[str, tuple[float, float]]:
    def both(read: Any) -> tuple[float, float]:
        return fmean(map(read, a)), fmean(map(read, b))

    return {
        "learning (s)": both(lambda r: r.cost["seconds"].get("learn", 0.0)),
        "predicting (s)": both(lambda r: r.cost["seconds"].get("predict", 0.0)),
        "trained parameters": both(lambda r: max(r.cost["trained_parameters"])),
        "state (KB)": both(lambda r: r.cost["state_bytes"][-1] / 1024),
        "peak memory (MB)": both(lambda r: r.cost["peak_memory_bytes"] / 2**20),
    }


def _notes(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    notes = []
    for key in ("scenario", "precision", "base_limit", "scenario_options"):
        one, other = a[0].spec[key], b[0].spec[key]
        if one != other:
            notes.append(f"They also differ in {key.replace('_', ' ')}: {one} and {other}.")
    if a[0].scenario["transform"] != b[0].scenario["transform"]:
        notes.append("They also differ in how images were transformed.")
    ours, theirs = ({record.spec["seed"] for record in records} for records in (a, b))
    for records, unused in ((a, ours - theirs), (b, theirs - ours)):
        if unused and ours & theirs:
            listed = ", ".join(map(str, sorted(unused)))
            notes.append(f"Not used, for the other lacks them: {_method(records)} seed {listed}.")
    if not ours & theirs:
        notes.append("They share no seed: the draws of training images differ between the two.")
    if not all(record.method["exemplar_free"] for record in (*a, *b)):
        keeps = a if not all(r.method["exemplar_free"] for r in a) else b
        notes.append(f"{_method(keeps)} keeps old images: a ceiling, not a competitor.")
    return notes


def _method(records: Sequence[Record]) -> str:
    return str(records[0].spec["method"])
