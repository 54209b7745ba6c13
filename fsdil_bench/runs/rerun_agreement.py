"""Do two records of the same run agree?

The last bits of floating-point numbers depend on the number of threads, the batch size, the version
of torch and the processor; training can amplify them. Where the same bits are expected, all
predictions must be the same; elsewhere a few may differ although nothing is wrong (`allowed`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fsdil_bench.records.metrics import unseen_accuracy
from fsdil_bench.records.record import Record

_TRUTH = ("labels", "domains", "groups", "unseen_labels", "unseen_sets")
_SURROUNDINGS = (
    "python", "platform", "processor", "device", "gpu", "threads", "products", "batch_size",
    "compile", "deterministic",
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What may differ: scores by so many percentage points, so many percent of the predictions."""

    points: float
    percent: float


#: The same bits are expected: nothing may differ.
EXACT = Allowed(0.0, 0.0)
#: The last bits may differ. This is a convention, not a bound.
LAST_BITS = Allowed(0.2, 2.0)
#: The same in bf16, which has a third of the digits.
LAST_BITS_OF_BF16 = Allowed(0.5, 5.0)


class Verdict(StrEnum):
    """How a run that was repeated compares with its record."""

    IDENTICAL = "identical"
    CLOSE = "same accuracy"
    DIFFERS = "differs"
    NOT_RUN = "not run again"


@dataclass(frozen=True)
class Verified:
    """A verdict and its reason.

    `largest` is the largest difference of any score, in points. `surroundings` are differences
    between the two places that could explain different predictions.
    """

    outcome: Verdict
    reason: str
    differing: int = 0
    predictions: int = 0
    largest: float | None = None
    surroundings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def allowed(said: Mapping[str, Any], here: Mapping[str, Any], precision: str) -> Allowed:
    """What may differ between two places, by their provenance: nothing where bits are stable.

    They are on one kind of CPU with the same number of threads and the same library that multiplies
    matrices, and on one kind of GPU if both runs
    were deterministic; in each case with the same batch size, packages and commit, and both or
    neither compiled.
    """
    same = ["device", "batch_size", "packages", "commit"]
    if here["device"] == "cpu":
        same += ["processor", "threads", "products"]
    else:
        same += ["gpu", "deterministic"]
    stable = here["device"] == "cpu" or here.get("deterministic", False)
    stable = stable and said.get("compile", False) == here.get("compile", False)
    if stable and all(name in said and said[name] == here.get(name) for name in same):
        return EXACT
    return LAST_BITS_OF_BF16 if precision == "bf16" else LAST_BITS


def compare(record: Record, again: Record, tolerance: float | None = None) -> Verified:
    """Compare a record with another one of the same run."""
    old, new = record.predictions(), again.predictions()
    places = tuple(surroundings(record.provenance, again.provenance))
    if set(old) != set(new) or any(
        not np.array_equal(old[name], new[name]) for name in _TRUTH if name in old
    ):
        return Verified(Verdict.DIFFERS, "the test images are different", surroundings=places)
    names = [name for name in old if name not in _TRUTH]
    total = sum(len(old[name]) for name in names)
    differing = sum(int((old[name] != new[name]).sum()) for name in names)
    if not differing:
        return Verified(Verdict.IDENTICAL, f"{total:,} predictions", 0, total, 0.0, places)
    largest = largest_difference(record, again)
    reason = f"{differing:,} of {total:,} predictions differ, scores by up to {largest:.3f} points"
    may = allowed(record.provenance, again.provenance, record.spec["precision"])
    if tolerance is not None:
        close = largest <= tolerance
    else:
        close = largest <= may.points and 100 * differing <= may.percent * total
        reason += (
            "; none should here"
            if may == EXACT
            else f" (allowed: {may.percent:g} %, {may.points:g} points)"
        )
    outcome = Verdict.CLOSE if close else Verdict.DIFFERS
    return Verified(outcome, reason, differing, total, largest, places)


def largest_difference(one: Record, other: Record) -> float:
    """The largest difference of any score of two records, in percentage points."""
    return max(
        abs(old - new)
        for old, new in zip(_scores(one), _scores(other), strict=True)
        if old is not None and new is not None
    )


def _scores(record: Record) -> Sequence[float | None]:
    oracle = record.oracle_metrics or {}
    names = sorted(record.metrics)
    return [
        *(record.metrics[name] for name in names),
        *(oracle.get(name) for name in names),
        unseen_accuracy(record.unseen),
    ]


def surroundings(said: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Differences between two places that could change last bits, and of the harness itself."""
    for name in _SURROUNDINGS:
        if name in said and said[name] != here.get(name):  # older records say less
            yield f"{name}: {said.get(name)} in the record, {here.get(name)} here"
    packages = said.get("packages", {}), here.get("packages", {})
    for name in sorted(set(packages[0]) | set(packages[1])):
        old, new = (each.get(name) for each in packages)
        if old != new:
            yield f"{name}: {old} in the record, {new} here"
    commits = [each.get("commit", {}).get("sha", "")[:12] for each in (said, here)]
    if commits[0] != commits[1]:
        yield f"commit: {commits[0] or 'none'} in the record, {commits[1] or 'none'} here"
