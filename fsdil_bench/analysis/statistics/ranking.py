"""Many methods ranked over several boards, and Holm's correction for several tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from fsdil_bench.errors import RequestError
from fsdil_bench.records.record import Record

from .outcomes import clusters_of, has_predictions
from .paired import group_notes


@dataclass(frozen=True)
class Ranking:
    """Average ranks over boards (1 is best, ties share), the best first.

    `p` is the p-value of Friedman's test that all methods are equally good. Two methods differ if
    their average ranks are further apart than `critical_difference` (Nemenyi's test; None for fewer
    than two boards). `groups` are the largest sets of methods without a significant difference.
    `left_out` are methods that are missing on some board. `notes` say where test images come in
    groups, and where groups are few.
    """

    ranks: dict[str, float]
    boards: tuple[str, ...]
    p: float | None
    critical_difference: float | None
    level: float
    groups: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()


def holm(p_values: Sequence[float], alpha: float = 0.05) -> list[bool]:
    """Which hypotheses to reject if the chance of any false rejection is to be at most `alpha`."""
    rejected = [False] * len(p_values)
    for done, position in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[position] > alpha / (len(p_values) - done):
            break
        rejected[position] = True
    return rejected


def average_ranks(
    boards: Mapping[str, Mapping[str, Sequence[Record]]],
    metric: str = "AA*",
    level: float = 0.95,
) -> Ranking:
    """Rank methods over boards; `boards[board][method]` are the records of the method's seeds.

    After Demšar (JMLR 2006). The tests treat boards as independent. Boards of one data set with
    different shots share test images, so they are not quite independent.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    everywhere = [
        m for m in next(iter(boards.values()), {}) if all(m in b for b in boards.values())
    ]
    if len(everywhere) < 2:
        raise RequestError(
            "fewer than two methods are on all boards", "Run more methods on all of them."
        )
    table = np.array([[_mean(rows[m], metric) for m in everywhere] for rows in boards.values()])
    if any(value is None for value in table.ravel()):
        raise RequestError(f"{metric} is undefined on some board", "Choose another --metric.")
    table = table.astype(float)
    means = rankdata(-table, axis=1).mean(0)
    order = sorted(range(len(everywhere)), key=lambda i: (means[i], everywhere[i]))
    ranks = {everywhere[i]: float(means[i]) for i in order}
    size, number = len(everywhere), len(table)
    critical, p = None, None
    if number > 1:
        spread = float(studentized_range.ppf(level, size, np.inf)) / np.sqrt(2)
        critical = float(spread * np.sqrt(size * (size + 1) / (6 * number)))
        if size > 2 and np.ptp(table, axis=1).any():
            p = float(friedmanchisquare(*table.T).pvalue)
    left = {m for rows in boards.values() for m in rows} - set(everywhere)
    notes = tuple(
        f"{board}: {note}" for board, rows in boards.items() for note in _notes(rows[everywhere[0]])
    )
    groups = _groups(ranks, critical)
    return Ranking(ranks, tuple(boards), p, critical, level, groups, tuple(sorted(left)), notes)


def _notes(records: Sequence[Record]) -> list[str]:
    return group_notes(clusters_of(records[0])) if has_predictions(records) else []


def _groups(ranks: Mapping[str, float], critical: float | None) -> tuple[tuple[str, ...], ...]:
    """Runs of methods within the critical difference of their first, none inside another."""
    if critical is None:
        return ()
    names, values = list(ranks), list(ranks.values())
    groups: list[tuple[str, ...]] = []
    reached = 0
    for first, value in enumerate(values):
        last = max(i for i, other in enumerate(values) if other - value <= critical)
        if last > first and last + 1 > reached:
            groups.append(tuple(names[first : last + 1]))
            reached = last + 1
    return tuple(groups)


def _mean(records: Sequence[Record], metric: str) -> float | None:
    values = [record.metrics[metric] for record in records]
    return None if None in values else fmean(value for value in values if value is not None)
