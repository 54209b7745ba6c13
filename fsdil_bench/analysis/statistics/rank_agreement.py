"""Whether two lists of scores put the same things into the same order.

Kendall's tau is the share of pairs in the same order minus the share in opposite order. What chance
alone would make of it is known exactly: if neither order says anything about the other, all
permutations are equally likely, and the number of pairs in opposite order is the number of
inversions of one of them. A tied pair counts as neither, and `p` is then that of the less extreme
way to break the tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

_ROUNDING = 1e-9


@dataclass(frozen=True)
class RankAgreement:
    """Kendall's tau of `number` things. Chance alone stays between -`limit` and `limit` with a
    probability of at least `level`, and gets as far from zero as `tau` with probability `p`."""

    tau: float
    number: int
    limit: float
    p: float
    level: float

    @property
    def significant(self) -> bool:
        """Whether the two orders agree or disagree more than chance explains."""
        return self.p <= 1 - self.level + _ROUNDING


def rank_agreement(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> RankAgreement:
    """Compare the orders of two scores of the same things, of which there must be two or more."""
    pairs = list(combinations(range(len(a)), 2))
    agreed = sum(int(np.sign(a[i] - a[j]) * np.sign(b[i] - b[j])) for i, j in pairs)
    tau = agreed / len(pairs)
    chances = _inversions(len(a))
    sizes = np.abs(1 - 2 * np.arange(len(chances)) / len(pairs))
    # Without ties, sizes are two steps apart; with one, tau lies between two of them.
    p = float(chances[sizes >= abs(tau) - 1 / len(pairs) - _ROUNDING].sum())
    limit = min(
        size for size in sizes if chances[sizes <= size + _ROUNDING].sum() >= level - _ROUNDING
    )
    return RankAgreement(tau, len(a), float(limit), min(p, 1.0), level)


def _inversions(number: int) -> np.ndarray:
    """The chance that a random permutation has 0, 1, 2 ... inversions."""
    chances = np.ones(1)
    for size in range(2, number + 1):  # the next element passes 0 to size - 1 others
        chances = np.convolve(chances, np.full(size, 1 / size))
    return chances
