"""Does a measured number agree with the paper's? One of four answers.

- *not run*: nothing was measured.
- *not comparable*: the two numbers are of different settings; the verdict says what differs.
- *reproduced*: the 95 % confidence interval of the difference of the two means contains zero.
- *not reproduced*: it does not.

The interval of the difference is combined from the intervals of the two means (Zou and Donner,
2008: each side is the root of the summed squares of the two distances that point to it). The
measured mean comes with its interval. The paper's is mean ± t s / √(n - 1) for the population
standard deviation s it prints over n seeds, with t the 97.5 % quantile of Student's distribution
with n - 1 degrees of freedom; half a unit of the last printed digit is added. Where the paper
prints no deviation, only that half unit is left.

An interval that is wide because there are few seeds contains almost anything: look at `margin`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import hypot, sqrt

from .results import Reported

_ROUNDING = 0.005
_STUDENT = {2: 4.3027, 4: 2.7764}  # 97.5 % quantiles by degrees of freedom: 3 and 5 seeds


class Case(StrEnum):
    """The four answers."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_RUN = "not run"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Verdict:
    """An answer and why. `difference` is measured minus reported; a difference of up to `margin`
    (on its side) is within the interval."""

    case: Case
    reason: str = ""
    difference: float | None = None
    margin: float | None = None

    def __str__(self) -> str:
        return f"{self.case}: {self.reason}" if self.reason else str(self.case)


def verdict(
    reported: Reported,
    measured_mean: float | None,
    interval_low: float | None = None,
    interval_high: float | None = None,
    comparable: bool = True,
    why_not: str = "",
) -> Verdict:
    """Compare a measured mean and its 95 % confidence interval with a number of the paper.

    `why_not` says what differs where the two are not `comparable` (see `what_differs`).
    """
    if measured_mean is None:
        return Verdict(Case.NOT_RUN)
    if reported.mean is None:
        return Verdict(Case.NOT_COMPARABLE, "the paper has no number")
    difference = measured_mean - reported.mean
    if not comparable:
        return Verdict(Case.NOT_COMPARABLE, why_not, difference)
    if interval_low is None or interval_high is None:
        why = "the measured number has no confidence interval (one seed?)"
        return Verdict(Case.NOT_COMPARABLE, why, difference)
    own = interval_high - measured_mean if difference < 0 else measured_mean - interval_low
    margin = hypot(own, half_width(reported))
    if abs(difference) <= margin:
        return Verdict(Case.REPRODUCED, f"within ± {margin:.2f}", difference, margin)
    side = "lower" if difference < 0 else "higher"
    why = f"{abs(difference):.2f} {side}, beyond ± {margin:.2f}"
    return Verdict(Case.NOT_REPRODUCED, why, difference, margin)


def half_width(reported: Reported) -> float:
    """Half the 95 % confidence interval of a reported mean."""
    if reported.std is None:
        return _ROUNDING
    free = reported.seeds - 1
    return _STUDENT[free] * reported.std / sqrt(free) + _ROUNDING
