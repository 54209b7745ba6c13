"""All scores of a record, computed again from its predictions.

What a record says of its own scores is never shown as it is: whoever can write the file can write
any number, with a hash that matches. Loading a record replaces its scores by these, and refuses a
record whose own differ by more than rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .metrics import scores

if TYPE_CHECKING:
    from .record import Record

_EXACT = 1e-6  # percentage points: room for another order of summation, not for another result
_MOST_KEPT = 4096


class Outcomes(NamedTuple):
    """Which test images were right (row t after domain t, eight steps to a byte), and the group of
    every image where they come in groups."""

    right: np.ndarray
    groups: np.ndarray | None


# By the hash of the predictions. The statistics need the outcomes of every record on a board, and
# reading files is what takes time.
_kept: dict[str, Outcomes] = {}


def kept_outcomes(record: Record) -> Outcomes:
    """The outcomes of a record, whose predictions are read once."""
    if record.predictions_sha256 not in _kept:
        recompute(record, record.predictions())
    return _kept[record.predictions_sha256]


def recompute(record: Record, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a record that follow from its predictions."""
    tests = record.test_counts
    right = _right(arrays, "classes", arrays["labels"], len(tests))
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[record.predictions_sha256] = Outcomes(np.packbits(right, axis=0), arrays.get("groups"))
    matrix = _matrix(right, tests)
    found: dict[str, Any] = {
        "matrix": matrix, "metrics": scores(matrix, tests), "oracle_matrix": None,
        "oracle_metrics": None, "routing": None, "unseen": None,
    }  # fmt: skip
    if record.routing is not None:
        oracle = _matrix(_right(arrays, "oracle", arrays["labels"], len(tests)), tests)
        routed = _right(arrays, "routed", arrays["domains"], len(tests))
        seen = np.cumsum(tests)
        found |= {
            "oracle_matrix": oracle,
            "oracle_metrics": scores(oracle, tests),
            "routing": (100.0 * (routed.sum(1) / seen)).tolist(),
        }
    if unseen := record.scenario.get("unseen"):
        hits = _right(arrays, "unseen_classes", arrays["unseen_labels"], len(tests))
        shares = _shares(hits, [each["test"] for each in unseen])
        found["unseen"] = {"names": [each["name"] for each in unseen], "matrix": shares.tolist()}
    return found


def truth_problems(record: Record, arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Whether the test sets of the predictions have the sizes that the record says."""
    unseen = [each["test"] for each in record.scenario.get("unseen", ())]
    for name, counts, place in (
        ("domains", record.test_counts, "scenario.domains"),
        ("unseen_sets", unseen, "scenario.unseen"),
    ):
        due = np.repeat(np.arange(len(counts)), counts)
        if counts and not np.array_equal(arrays[name], due):
            yield f"{name} in predictions.npz do not match the counts of {place}"


def score_problems(record: Record, due: Mapping[str, Any]) -> Iterator[str]:
    """Where a record says other scores than those that were recomputed."""
    for name, value in due.items():
        said = getattr(record, name)
        if value is None and said is not None:
            yield f"{name} is there, but no predictions for it"
        elif value is not None:
            yield from _compare(name, said, value)


def _right(
    arrays: Mapping[str, np.ndarray], kind: str, truth: np.ndarray, steps: int
) -> np.ndarray:
    """Row t: which images were right after domain t; images of later domains count as wrong."""
    right = np.zeros((steps, len(truth)), dtype=bool)
    for t, row in enumerate(right):
        answers = arrays[f"{kind}_{t}"]
        np.equal(answers, truth[: len(answers)], out=row[: len(answers)])
    return right


def _shares(right: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """Percent right in each test set, row by row."""
    starts = np.cumsum([0, *counts[:-1]])
    sums = np.add.reduceat(right, starts, axis=1, dtype=np.int64)
    return 100.0 * (sums / np.asarray(counts))


def _matrix(right: np.ndarray, tests: Sequence[int]) -> list[list[float]]:
    return [row[: t + 1] for t, row in enumerate(_shares(right, tests).tolist())]


def _compare(place: str, said: Any, due: Any) -> Iterator[str]:
    """Differences between two nested structures, each with its place in the record."""
    if isinstance(due, dict):
        for key, value in due.items():
            yield from _compare(f"{place}.{key}", said.get(key) if said else None, value)
    elif isinstance(due, list):
        if said is None or len(said) != len(due):
            count = "nothing" if said is None else len(said)
            yield f"{place} has {count} instead of {len(due)} entries"
            return
        for i, value in enumerate(due):
            yield from _compare(f"{place}[{i}]", said[i], value)
    elif isinstance(due, str):
        if said != due:
            yield f"{place} is {said}, but the test sets say {due}"
    elif (said is None) != (due is None) or (due is not None and abs(said - due) > _EXACT):
        yield f"{place} is {said}, but the predictions say {due}"
