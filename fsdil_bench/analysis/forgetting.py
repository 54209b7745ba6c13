"""What old domains lose while later ones are learned, from an accuracy matrix A[t, i].

A domain's loss after domain t is its accuracy when it was learned minus its accuracy after t:
A[i, i] - A[t, i]. FA* looks at the accuracies of old domains themselves; the loss is what is left
when a method that never was good at them is not blamed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Forgetting:
    """The mean accuracy of all domains but the last, when each was learned and at the end."""

    learned: float
    end: float

    @property
    def lost(self) -> float:
        """The points that they lost in between."""
        return self.learned - self.end


def forgetting(matrix: Sequence[Sequence[float]]) -> Forgetting | None:
    """How much of its old domains a method has lost at the end; None for a single domain."""
    if len(matrix) < 2:
        return None
    learned = [row[i] for i, row in enumerate(matrix[:-1])]
    return Forgetting(fmean(learned), fmean(matrix[-1][:-1]))


def forgetting_curve(matrix: Sequence[Sequence[float]]) -> list[float]:
    """After each domain but the first, the mean loss of those before it, in points."""
    return [
        found.lost
        for t in range(2, len(matrix) + 1)
        if (found := forgetting([row[:t] for row in matrix[:t]]))
    ]
