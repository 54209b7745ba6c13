"""Two methods compared in full: scores, domains, images, routing and cost.

`compare` gathers what `fsdil-bench compare` shows. Which method is better, and how sure that is,
comes from `fsdil_bench.analysis.statistics`. Differences are A minus B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.shown import Cell, Part, Shown, Strong, Table, Title

from .grouping import differences
from .statistics import (
    Interval,
    PairedDifference,
    correct,
    difference_of,
    holm,
    paired_difference,
    shared_seeds,
    weights_of,
)

_MOST_CLASSES = 5


@dataclass(frozen=True)
class Difference:
    """One quantity of both methods, in percent (mean over the shared seeds), and the difference."""

    name: str
    a: float
    b: float
    difference: float
    interval: Interval
    p: float
    significant: bool


@dataclass(frozen=True)
class Disagreement:
    """How many images exactly one of the two gets right after the last domain, mean over seeds."""

    name: str
    images: int
    only_a: float
    only_b: float


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Everything `fsdil-bench compare` shows.

    `domains` are accuracies after the last domain; whether they differ is tested with Holm's
    correction for their number. `disagreements` counts images overall, per domain, and for the
    classes that matter most. `routing` is None unless both methods route. `notes` say in what else
    the runs differ.
    """

    overall: PairedDifference
    scores: list[Difference]
    domains: list[Difference]
    disagreements: dict[str, list[Disagreement]]
    routing: dict[str, float] | None
    cost: dict[str, tuple[float, float]]
    notes: list[str]

    def _shown_parts(self) -> Sequence[Part]:
        """What a notebook and `print` show: which is better, in which score, on which domain."""
        overall = self.overall
        a, b = overall.a, overall.b
        rows = [*self.scores, *self.domains]
        table = Table(
            ["", a, b, "difference", f"{overall.interval.level:.0%} interval", "p"],
            [[each.name, *_shown_difference(each)] for each in rows],
        )
        seeds = ", ".join(map(str, overall.seeds))
        return [
            Title(overall.summary),
            *([overall.caveat] if overall.caveat else []),
            f"percent; scores, then accuracy on each domain at the end; {a} minus {b}; intervals "
            f"cover {overall.interval.covers}: {seeds}",
            table,
            Strong(f"significant at {1 - overall.interval.level:.0%} (domains: with Holm)"),
            *self.notes,
        ]

    def _shown_line(self) -> str:
        """The same in one line."""
        return f"Comparison: {self.overall.summary}"


def _shown_difference(found: Difference) -> list[Cell]:
    interval = found.interval
    return [
        Cell(f"{found.a:.2f}"),
        Cell(f"{found.b:.2f}"),
        Cell(f"{found.difference:+.2f}", strong=found.significant),
        Cell(f"{interval.low:+.2f} to {interval.high:+.2f}"),
        Cell(f"{found.p:.2g}"),
    ]


def compare(
    a: Record | Sequence[Record],
    b: Record | Sequence[Record],
    metric: str = "AA*",
    level: float = 0.95,
) -> Comparison:
    """Compare the runs of two methods on the same test images: A minus B.

    Each is the record of a run, or several that differ in the seed alone. Runs of one seed are
    paired, since both methods saw the same images there.
    """
    a, b = ([each] if isinstance(each, Record) else list(each) for each in (a, b))
    overall = paired_difference(a, b, metric, level)
    ours, theirs = shared_seeds(a, b)
    return Comparison(
        overall,
        _scores(ours, theirs, level),
        _domains(ours, theirs, level),
        _disagreements(ours, theirs),
        _routing(ours, theirs),
        _cost(ours, theirs),
        _notes(a, b),
    )


def _scores(a: list[Record], b: list[Record], level: float) -> list[Difference]:
    known = {name: weights_of(name, a[0].test_counts) for name in METRICS}
    found = [
        _difference(name, weights, a, b, level)
        for name, weights in known.items()
        if weights is not None
    ]
    return [replace(each, significant=each.p < 1 - level) for each in found]


def _domains(a: list[Record], b: list[Record], level: float) -> list[Difference]:
    names = a[0].domain_names
    found = []
    for i, name in enumerate(names):
        weights = np.zeros((len(names), len(names)))
        weights[-1, i] = 1
        found.append(_difference(name, weights, a, b, level))
    rejected = holm([each.p for each in found], 1 - level)
    return [replace(each, significant=one) for each, one in zip(found, rejected, strict=True)]


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


def _disagreements(a: list[Record], b: list[Record]) -> dict[str, list[Disagreement]]:
    right = np.stack([correct(record)[-1] for record in a])
    other = np.stack([correct(record)[-1] for record in b])
    only_a, only_b = (right & ~other).mean(0), (other & ~right).mean(0)
    arrays = a[0].predictions()
    classes = a[0].scenario["classes"]

    def count(groups: np.ndarray, names: Sequence[str]) -> list[Disagreement]:
        images, won, lost = (
            np.bincount(groups, weights, len(names)) for weights in (None, only_a, only_b)
        )
        return [
            Disagreement(name, int(images[i]), float(won[i]), float(lost[i]))
            for i, name in enumerate(names)
        ]

    by_class = count(arrays["labels"], classes)
    by_class.sort(key=lambda each: (-abs(each.only_a - each.only_b), each.name))
    return {
        "overall": count(np.zeros(len(only_a), dtype=int), ["all"]),
        "domains": count(arrays["domains"], a[0].domain_names),
        "classes": by_class[:_MOST_CLASSES],
    }


def _routing(a: list[Record], b: list[Record]) -> dict[str, float] | None:
    """After the last domain, in percent: images sent to the right domain, and to the same one."""
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
    def both(read: Callable[[Record], float]) -> tuple[float, float]:
        return fmean(map(read, a)), fmean(map(read, b))

    return {
        "learning (s)": both(lambda r: r.cost["seconds"].get("learn", 0.0)),
        "predicting (s)": both(lambda r: r.cost["seconds"].get("predict", 0.0)),
        "trained parameters": both(lambda r: max(r.cost["trained_parameters"])),
        "state (KB)": both(lambda r: r.cost["state_bytes"][-1] / 1024),
        "peak memory (MB)": both(lambda r: r.cost["peak_memory_bytes"] / 2**20),
    }


def _notes(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    notes = [f"They also differ in {text}." for text in differences(a[0], b[0]).values()]
    ours, theirs = ({record.seed for record in records} for records in (a, b))
    for records, unused in ((a, ours - theirs), (b, theirs - ours)):
        if unused and ours & theirs:
            listed = ", ".join(map(str, sorted(unused)))
            notes.append(
                f"Not used, because the other has no such run: {_method(records)} seed {listed}."
            )
    if not ours & theirs:
        notes.append("They share no seed: the draws of training images differ between the two.")
    if not all(record.exemplar_free for record in (*a, *b)):
        keeps = a if not all(r.exemplar_free for r in a) else b
        notes.append(f"{_method(keeps)} keeps old images: a ceiling, not a competitor.")
    return notes


def _method(records: Sequence[Record]) -> str:
    return str(records[0].spec["method"])
