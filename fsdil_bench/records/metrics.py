"""The four scores of few-shot domain-incremental learning, from the accuracy matrix.

A[t, i] is the accuracy (in percent) on the test images of domain i after learning domain t. Only
domains seen so far count (i <= t), whatever else the matrix holds.

    AA_t = mean over i <= t of A[t, i]           AA* = mean over t of AA_t
    FA_j = mean over t > j of A[t, j]            FA* = mean over j < T-1 of FA_j
    Acc_t = accuracy over the union of the test images of domains 0..t
    Avg = mean over t of Acc_t                   Last = Acc_{T-1}

FA* is forgetting *alleviation*: higher is better. With one domain nothing can be forgotten, and
FA* is undefined (None).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

METRICS = ("AA*", "FA*", "Avg", "Last")


def accuracy_row(correct: np.ndarray, domain_of: np.ndarray, domains: int) -> list[float]:
    """Percent correct for each of the first `domains` domains."""
    return [100.0 * float(correct[domain_of == i].mean()) for i in range(domains)]


def scores(
    matrix: Sequence[Sequence[float]], test_counts: Sequence[int]
) -> dict[str, float | None]:
    """AA*, FA*, Avg and Last of an accuracy matrix given row by row (row t has t + 1 entries
    or more) and the number of test images per domain."""
    rows = [[float(value) for value in row[: t + 1]] for t, row in enumerate(matrix)]
    size = len(rows)
    if size == 0:
        raise ValueError("a matrix needs at least one row")
    columns = [[rows[t][j] for t in range(j + 1, size)] for j in range(size - 1)]
    weights = np.asarray(test_counts[:size], dtype=float)
    pooled = [float(np.average(row, weights=weights[: t + 1])) for t, row in enumerate(rows)]
    return {
        "AA*": fmean(fmean(row) for row in rows),
        "FA*": fmean(fmean(column) for column in columns) if columns else None,
        "Avg": fmean(pooled),
        "Last": pooled[-1],
    }


def unseen_accuracy(unseen: Mapping[str, Any] | None) -> float | None:
    """Mean over the test sets of no domain after the last domain; None where there are none.

    `unseen` is that of a record.
    """
    return fmean(unseen["matrix"][-1]) if unseen else None


def mean_and_std(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and population standard deviation over seeds; None where a value is undefined.

    One seed has no spread: its std is None.
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None, None
    return fmean(known), float(np.std(known)) if len(known) > 1 else None
