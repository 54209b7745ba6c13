"""What can be concluded from the records of a few seeds and a few thousand test images.

The quantity estimated is a method's expected score over seeds (draws of the K images, training
noise) and over test images like those of each domain; the domains, their order and the classes are
fixed. All four scores are sums over test images (`outcomes`), so uncertainty needs no resampling:
it splits into a part that more seeds would shrink and a part that more images would shrink
(`uncertainty`). Two methods are compared on the same images and seeds (`paired`), many against the
best of them or over several boards (`ranking`). Everything is deterministic.
"""

from __future__ import annotations

from .outcomes import correct, weights_of
from .paired import PairedDifference, difference_of, paired_difference, shared_seeds
from .ranking import Ranking, average_ranks, best_group, holm
from .uncertainty import Estimate, Interval, interval

__all__ = [
    "Estimate",
    "Interval",
    "PairedDifference",
    "Ranking",
    "average_ranks",
    "best_group",
    "correct",
    "difference_of",
    "holm",
    "interval",
    "paired_difference",
    "shared_seeds",
    "weights_of",
]
