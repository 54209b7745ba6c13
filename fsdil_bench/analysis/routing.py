"""Which domain a router sends the test images of each domain to."""

from __future__ import annotations

import numpy as np

from fsdil_bench.records.record import Record

from .statistics.outcomes import has_predictions


def routing_confusion(record: Record) -> list[np.ndarray] | None:
    """After each domain t a matrix of percentages: row i has the images of domain i, column j those
    of them that were sent to domain j.

    None for methods that do not guess the domain and for records without their predictions. Rows
    add up to 100, unless images were sent to a domain that is not known yet.
    """
    if not record.routing or not has_predictions([record]):
        return None
    arrays = record.predictions()
    return [
        _confusion(arrays["domains"], arrays[f"routed_{t}"], t + 1)
        for t in range(len(record.matrix))
    ]


def _confusion(domains: np.ndarray, routed: np.ndarray, size: int) -> np.ndarray:
    true = domains[: len(routed)].astype(int)
    known = (routed >= 0) & (routed < size)
    counts = np.zeros((size, size))
    np.add.at(counts, (true[known], routed[known].astype(int)), 1)
    return 100 * counts / np.maximum(1, np.bincount(true, minlength=size))[:, None]
