"""What can be concluded from the records of a few seeds and a few thousand test images.

The quantity estimated is a method's expected score over seeds (draws of the K images, training
noise) and over test images like those of each domain; the domains, their order and the classes are
fixed. All four scores are sums over test images (`outcomes`), so uncertainty splits into a part
that more seeds would shrink and a part that more images would shrink (`uncertainty`), where images
of one video count as one (`clusters`). Two methods are compared on the same images and seeds
(`paired`), the rows of a board with the best of them (`against_best`), methods over several boards
(`ranking`), and the order of methods here with one elsewhere (`rank_agreement`). Everything is
deterministic.
"""

from __future__ import annotations

from .against_best import Standing, distinguishable, standing
from .clusters import FEW_GROUPS, Clusters
from .outcomes import clusters_of, correct, weights_of
from .paired import PairedDifference, difference_of, paired_difference, shared_seeds
from .rank_agreement import RankAgreement, rank_agreement
from .ranking import Ranking, average_ranks, holm
from .uncertainty import Estimate, Interval, interval

__all__ = [
    "FEW_GROUPS",
    "Clusters",
    "Estimate",
    "Interval",
    "PairedDifference",
    "RankAgreement",
    "Ranking",
    "Standing",
    "average_ranks",
    "clusters_of",
    "correct",
    "difference_of",
    "distinguishable",
    "holm",
    "interval",
    "paired_difference",
    "rank_agreement",
    "shared_seeds",
    "standing",
    "weights_of",
]
