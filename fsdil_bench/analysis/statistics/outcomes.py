"""Scores as sums over test images.

Every score is a weighted sum of the accuracies A[t, i], with weights that depend on the stream
alone (`weights_of`), and an accuracy is a mean over the test images of one domain. So each image
contributes what it was worth over the whole stream (`contributions`), and the score is the sum over
domains of the mean contribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsdil_bench.errors import RequestError
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.recompute import kept_outcomes
from fsdil_bench.records.record import PREDICTIONS_FILE, Record

from .clusters import Clusters

_MOST_KEPT = 4096
_clusters: dict[str, Clusters] = {}


def has_predictions(records: Sequence[Record]) -> bool:
    """Whether all records have their file of predictions."""
    return all(r.folder is not None and (r.folder / PREDICTIONS_FILE).is_file() for r in records)


def correct(record: Record) -> np.ndarray:
    """Row t: which test images were right after domain t, in the stream's order; images of later
    domains count as wrong."""
    return np.unpackbits(_packed(record), axis=0, count=len(record.matrix)).astype(bool)


def clusters_of(record: Record) -> Clusters:
    """Which test images of a record belong together."""
    found = _clusters.get(record.predictions_sha256)
    if found is None:
        found = Clusters.of(record.test_counts, kept_outcomes(record).groups)
        if len(_clusters) >= _MOST_KEPT:
            _clusters.clear()
        _clusters[record.predictions_sha256] = found
    return found


def _packed(record: Record) -> np.ndarray:
    """`correct`, eight steps to a byte, the first step in the highest bit: so packed, the runs of
    boards with thousands of records fit into memory."""
    return kept_outcomes(record).right


def weights_of(metric: str, counts: Sequence[int]) -> np.ndarray | None:
    """The weight of every A[t, i] in a score, for domains with `counts` test images.

    None where the score is undefined (FA* of a single domain).
    """
    if metric not in METRICS:
        raise RequestError(f"unknown score '{metric}'", f"There are {', '.join(METRICS)}.")
    size = len(counts)
    t, i = np.indices((size, size))
    seen = i <= t
    if metric == "FA*":
        later = np.maximum(size - 1 - i, 1)
        return (t > i) / later / (size - 1) if size > 1 else None
    if metric == "AA*":
        return seen / (t + 1) / size
    pooled = seen * np.asarray(counts, dtype=float)
    pooled /= pooled.sum(1, keepdims=True)
    return pooled / size if metric == "Avg" else pooled * (t == size - 1)


def contributions(records: Sequence[Record], weights: np.ndarray) -> np.ndarray:
    """Row s: for each test image the percentage points it earned in record s, as a share of its
    domain: their means over each domain's images add up to the score."""
    ends = np.cumsum(records[0].test_counts)
    # Of eight steps there are only 256 patterns: what each is worth in each domain is looked up.
    patterns = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    eights = np.split(weights, range(8, len(weights), 8))
    worth = [100 * (patterns[:, : len(eight)] @ eight).T for eight in eights]
    found = np.zeros((len(records), ends[-1]))
    for row, record in zip(found, records, strict=True):
        for tables, bits in zip(worth, _packed(record), strict=True):
            for table, own, part in zip(
                tables, np.split(row, ends[:-1]), np.split(bits, ends[:-1]), strict=True
            ):
                own += table[part]
    return found
