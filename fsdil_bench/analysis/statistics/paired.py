"""Two methods on the same test images and the same seeds.

Differences are A minus B, so positive means that A is better. Seeds that both have are paired:
they share the draw of the K images. Where they share none, seeds are paired in order, which is
valid (the draws are independent), but gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsdil_bench.analysis.grouping import differences
from fsdil_bench.errors import RecordError, RequestError
from fsdil_bench.records.record import Record

from .clusters import FEW_GROUPS, Clusters
from .outcomes import clusters_of, contributions, correct, has_predictions, weights_of
from .uncertainty import Estimate, Interval, estimate

#: What paired runs must have in common; in other respects they may differ (`grouping`).
_MUST_AGREE = ("backbone", "weights", "order", "classes", "tests")


@dataclass(frozen=True)
class PairedDifference:
    """How much better A is than B in one score (A minus B, in percentage points).

    `effect` is the share of the disagreements (images that exactly one of the two gets right,
    weighted as in the score) that A wins: 0.5 is no effect, and by Cohen's g, 0.55 is small, 0.65
    medium, 0.75 large. It is None where they never disagree. `summary` is the result in a sentence.
    `caveat` says what so few seeds or groups of images cannot show, and how many groups there are
    where images come in groups; else it is empty.
    """

    metric: str
    a: str
    b: str
    difference: float
    interval: Interval
    p: float
    effect: float | None
    seeds: tuple[int, ...]
    summary: str
    caveat: str

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at the interval's level."""
        return self.p < 1 - self.interval.level


def paired_difference(
    a: Sequence[Record], b: Sequence[Record], metric: str = "AA*", level: float = 0.95
) -> PairedDifference:
    """Compare the records of two methods on the same test images, paired by image and by seed."""
    a, b = shared_seeds(a, b)
    weights = weights_of(metric, a[0].test_counts)
    if weights is None:
        raise RequestError(f"{metric} is undefined for a single domain", "Choose another --metric.")
    found = difference_of(a, b, weights)
    names = _names(a[0], b[0])
    interval = found.interval(level)
    p = found.p_value()
    return PairedDifference(
        metric, *names, found.mean, interval, p, _effect(a, b, weights),
        tuple(record.seed for record in a),
        _summary(metric, *names, found, interval, p), _caveat(found.seeds, clusters_of(a[0])),
    )  # fmt: skip


def difference_of(a: Sequence[Record], b: Sequence[Record], weights: np.ndarray) -> Estimate:
    """The difference in the weighted sum of accuracies between paired records."""
    gains = contributions(a, weights) - contributions(b, weights)
    return estimate(gains, clusters_of(a[0]))


def shared_seeds(a: Sequence[Record], b: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The records to pair, in the order of seeds, checked to be over the same images."""
    ours, theirs = _by_seed(a), _by_seed(b)
    for record in (*a, *b):
        check_comparable(a[0], record)
    seeds = sorted(ours.keys() & theirs.keys())
    for seed in seeds:
        _check_training(ours[seed], theirs[seed])
    if seeds:
        return [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
    number = min(len(ours), len(theirs))
    return (
        [ours[seed] for seed in sorted(ours)[:number]],
        [theirs[seed] for seed in sorted(theirs)[:number]],
    )


def _by_seed(records: Sequence[Record]) -> dict[int, Record]:
    if not records:
        raise RequestError("there are no records to compare", "Give runs of both methods.")
    if not has_predictions(records):
        raise RecordError(
            f"runs of {records[0].spec['method']} have no predictions", "Run them again."
        )
    found: dict[int, Record] = {}
    for record in records:
        seed = record.seed
        if found.setdefault(seed, record).run_id != record.run_id:
            raise RequestError(
                f"two different runs of {record.spec['method']} have seed {seed}:"
                f" they differ in {_what_differs(found[seed], record)}",
                "Give a folder with those that belong together.",
            )
    return found


def _what_differs(a: Record, b: Record) -> str:
    """Why two runs of one method and seed have different ids."""
    texts = list(differences(a, b).values())
    ours, theirs = (record.spec.get("config", {}) for record in (a, b))
    if options := sorted(n for n in {*ours, *theirs} if ours.get(n) != theirs.get(n)):
        texts.append(f"options: {', '.join(options)}")
    codes = [record.method.get("code", {}) for record in (a, b)]
    if parts := sorted(n for n in {*codes[0], *codes[1]} if codes[0].get(n) != codes[1].get(n)):
        texts.append(f"code of the {' and the '.join(parts)}")
    return "; ".join(texts) or "training images or the version of the protocol"


def check_comparable(a: Record, b: Record) -> None:
    """Refuse runs with different domains, test images, classes or backbones."""
    for name, text in differences(a, b).items():
        if name in _MUST_AGREE:
            raise RequestError(
                f"{_name(a)} and {_name(b)} cannot be compared: they differ in {text}",
                "Compare runs of one board (`fsdil-bench leaderboard` shows the boards).",
            )


def _check_training(a: Record, b: Record) -> None:
    """Refuse runs of one scenario and seed that learned from different images."""
    same = all(a.spec[name] == b.spec[name] for name in ("scenario", "base_limit"))
    if same and _trains(a) != _trains(b):
        raise RequestError(
            f"{_name(a)} and {_name(b)} learned from different images under seed {a.seed}",
            "The data set or the protocol changed between the runs: run both again.",
        )


def _trains(record: Record) -> list[str]:
    return [domain["train_sha256"] for domain in record.scenario["domains"]]


def _name(record: Record) -> str:
    return f"{record.spec['method']} on {record.spec['scenario']}"


def _names(a: Record, b: Record) -> tuple[str, str]:
    """What to call the two: by method, else by scenario, else A and B."""
    ours, theirs = a.spec["method"], b.spec["method"]
    if ours != theirs:
        return ours, theirs
    if a.spec["scenario"] != b.spec["scenario"]:
        return _name(a), _name(b)
    return f"{ours} (A)", f"{theirs} (B)"


def _effect(a: Sequence[Record], b: Sequence[Record], weights: np.ndarray) -> float | None:
    counts = a[0].test_counts
    worth = np.repeat(weights / np.asarray(counts), counts, axis=1)
    won = lost = 0.0
    for ours, theirs in zip(a, b, strict=True):
        right, other = correct(ours), correct(theirs)
        won += float(worth[right & ~other].sum())
        lost += float(worth[other & ~right].sum())
    return won / (won + lost) if won + lost else None


def _summary(metric: str, a: str, b: str, found: Estimate, interval: Interval, p: float) -> str:
    level = f"{interval.level:.0%} interval"
    if p < 1 - interval.level:
        better, worse = (a, b) if found.mean > 0 else (b, a)
        low, high = sorted(abs(bound) for bound in (interval.low, interval.high))
        return (
            f"{better} is better than {worse} by {abs(found.mean):.2f} points of {metric}"
            f" ({level} {low:.2f} to {high:.2f}), p = {p:.2g}."
        )
    return (
        f"There is no significant difference between {a} and {b}:"
        f" {found.mean:+.2f} points of {metric}"
        f" ({level} {interval.low:+.2f} to {interval.high:+.2f}), p = {p:.2g}."
    )


def _caveat(seeds: int, clusters: Clusters) -> str:
    texts = []
    if seeds == 1:
        texts.append(
            "One seed: the interval and p cover the choice of test images only. Whether another"
            " draw of the K images or another training would turn the result is not known."
        )
    if seeds == 2:
        texts.append(
            "Two seeds say little about how much seeds matter: the interval is wide for that."
        )
    return " ".join([*texts, *group_notes(clusters)])


def group_notes(clusters: Clusters) -> list[str]:
    """How many groups the test images come in, and whether they are few; nothing without groups."""
    if not clusters.given:
        return []
    notes = [
        f"The {clusters.images.sum():,} test images come in {clusters.groups.sum():,} groups"
        " (frames of one video, or copies): intervals and p count groups."
    ]
    if (least := int(clusters.groups.min())) < FEW_GROUPS:
        notes.append(f"A domain has only {least}: intervals that rest on so few are not reliable.")
    return notes
