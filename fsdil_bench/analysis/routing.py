"""Which domain a router sends the test images of each domain to."""

from __future__ import annotations

import numpy as np

from fsdil_bench.records.record import Record

from .statistics.outcomes import has_predictions


def routing_confusion(record: Record) -> list[np.ndarray] | None:
    """After each domain t a matrix of percentages: row i has the images of domain i, column j those
    of them that were sent to domain j.

    None for methods that do not guess the domain and for records without their predictions.
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
    counts = np.bincount(true * size + routed, minlength=size * size).reshape(size, size)
    return np.asarray(100 * counts / np.bincount(true, minlength=size)[:, None])
