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

from collections.abc import Sequence
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
    (on its side) is within the interval. `reasons` say why numbers do not compare."""

    case: Case
    reasons: tuple[str, ...] = ()
    difference: float | None = None
    margin: float | None = None

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.difference is None or self.margin is None:
            return ", ".join(self.reasons)
        if self.case == Case.REPRODUCED:
            return f"within ± {self.margin:.2f}"
        side = "lower" if self.difference < 0 else "higher"
        return f"{abs(self.difference):.2f} {side}, beyond ± {self.margin:.2f}"

    def __str__(self) -> str:
        return f"{self.case}: {self.reason}" if self.reason else str(self.case)


def verdict(
    reported: Reported,
    measured_mean: float | None,
    interval_low: float | None = None,
    interval_high: float | None = None,
    why_not: Sequence[str] = (),
) -> Verdict:
    """Compare a measured mean and its 95 % confidence interval with a number of the paper.

    The two do not compare if `why_not` says what differs (see `what_differs`).
    """
    if measured_mean is None:
        return Verdict(Case.NOT_RUN)
    if reported.mean is None:
        return Verdict(Case.NOT_COMPARABLE, ("the paper has no number",))
    difference = measured_mean - reported.mean
    if why_not:
        return Verdict(Case.NOT_COMPARABLE, tuple(why_not), difference)
    if interval_low is None or interval_high is None:
        why = "the measured number has no confidence interval (one seed?)"
        return Verdict(Case.NOT_COMPARABLE, (why,), difference)
    own = interval_high - measured_mean if difference < 0 else measured_mean - interval_low
    margin = hypot(own, half_width(reported))
    case = Case.REPRODUCED if abs(difference) <= margin else Case.NOT_REPRODUCED
    return Verdict(case, (), difference, margin)


def half_width(reported: Reported) -> float:
    """Half the 95 % confidence interval of a reported mean."""
    if reported.std is None:
        return _ROUNDING
    free = reported.seeds - 1
    return _STUDENT[free] * reported.std / sqrt(free) + _ROUNDING
