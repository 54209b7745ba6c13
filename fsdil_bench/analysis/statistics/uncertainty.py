"""How far an observed score may be from the expected one.

The contribution of image x under seed s is taken as mean + seed effect + image effect + rest, with
groups of images (`clusters`) drawn independently within each domain and the same for all seeds. The
variance of the mean over S seeds is then

    (seed effect + rest) / S    estimated by the variance between seeds over S, S - 1 degrees of
                                freedom: few seeds say little about how much seeds matter
    image effect                estimated by the variance between groups of their means over seeds,
                                less the part of it that is due to the rest; its degrees of freedom
                                are those of the domains combined after Satterthwaite

and the estimate over its standard error follows neither of the two t distributions, but something
between. Its quantile is taken between the two, (1 - g) t_images + g t_seeds, with g = share ** 1.25
and share = the seeds' part of the variance. With exponent 1 this is Cochran's rule (Biometrics,
1964), which covers up to 98 % where 95 % are asked for; Satterthwaite's degrees of freedom for the
whole cover as little as 87 % with two seeds. Resampling seeds is worse: two seeds have no more than
two values.

A score has bounds, and near them the spread shrinks: its interval is Wilson's, with the number of
independent images that would have the same standard error (`Estimate.score_interval`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsdil_bench.records.record import Record

from .clusters import Clusters
from .outcomes import clusters_of, contributions, has_predictions, weights_of

# Chosen by simulation, not derived: docs/statistics.md says on which worlds. Do not tune them on
# the worlds of tests/fresh_worlds.py.
_BLEND = 1.25
_FEW_ERRORS = 0.03  # so many wrong groups say as much about the variance as the groups' number
_SKEW = 0.5  # how much longer the interval of a score is for seed effects that may be skewed


@dataclass(frozen=True)
class Interval:
    """A confidence interval in percentage points; `covers` says for what, in words."""

    low: float
    high: float
    level: float
    covers: str


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and images with the two parts of its variance.

    `image_freedom` are the degrees of freedom of the images' part.
    """

    mean: float
    seed_variance: float
    image_variance: float
    seeds: int
    image_freedom: float = np.inf

    @property
    def covers(self) -> str:
        """What the uncertainty is about."""
        if self.seeds == 1:
            return "test images only: one seed"
        return f"test images and seeds ({self.seeds})"

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt(self.seed_variance + self.image_variance))

    @property
    def seed_share(self) -> float:
        """The seeds' part of the variance."""
        whole = self.seed_variance + self.image_variance
        return self.seed_variance / whole if whole else 0.0

    def interval(self, level: float = 0.95) -> Interval:
        """The confidence interval."""
        half = self.error * self._quantile((1 - level) / 2) if self.error else 0.0
        return Interval(self.mean - half, self.mean + half, level, self.covers)

    def score_interval(self, level: float, groups: float) -> Interval:
        """The confidence interval of a percentage: never below 0 or above 100.

        It holds the values that are not rejected if the variance is proportional to p (1 - p), as
        in Wilson's interval. `groups` is the number of groups with equal say that the score rests
        on: where hardly any group is wrong, their number says more about the variance than the
        few errors do. Skewed seed effects, as they are near the bounds, make few seeds look more
        alike than they are: the standard error is raised by up to `_SKEW` / seeds for that.
        """
        share = min(max(self.mean / 100, 0.0), 1.0)
        variance = self.error**2 / 1e4
        spread_of_one = share * (1 - share)
        trust = (errors := groups * min(share, 1 - share)) / (errors + _FEW_ERRORS)
        variance = max(variance, trust * variance + (1 - trust) * spread_of_one / groups)
        number = spread_of_one / variance if spread_of_one and variance else groups
        skew = 1 + _SKEW * self.seed_share / self.seeds
        spread = (skew * self._quantile((1 - level) / 2)) ** 2 / number
        middle = (share + spread / 2) / (1 + spread)
        half = np.sqrt(spread * spread_of_one + spread**2 / 4) / (1 + spread)
        # Rounding must not exclude the mean where it is at a bound.
        low, high = 100 * max(0.0, min(middle - half, share)), 100 * max(middle + half, share)
        return Interval(float(low), float(high), level, self.covers)

    def p_value(self) -> float:
        """How probable a mean at least this far from zero is if the true one is zero."""
        from scipy.optimize import brentq

        if not self.error:
            return 1.0 if self.mean == 0 else 0.0
        distance = abs(self.mean) / self.error
        least = -230.0  # 1e-100; far beyond that SciPy's quantiles fail
        if self._quantile(np.exp(least)) <= distance:
            return 0.0
        tail = brentq(lambda log: self._quantile(np.exp(log)) - distance, least, np.log(0.5))
        return float(2 * np.exp(tail))

    def _quantile(self, tail: float) -> float:
        """The distance from the mean, in standard errors, that is exceeded with chance `tail`."""
        from scipy.special import stdtrit

        images = -float(stdtrit(self.image_freedom, tail))
        if not self.seed_variance:
            return images
        blend = self.seed_share**_BLEND
        return (1 - blend) * images - blend * float(stdtrit(self.seeds - 1, tail))


def estimate(values: np.ndarray, clusters: Clusters) -> Estimate:
    """The estimate from contributions, one row per seed."""
    seeds = len(values)
    scores = clusters.means(values).sum(1)
    deviations = clusters.deviations(values)
    image_effects = deviations.mean(0)
    domains = clusters.by_domain(image_effects**2)
    images = float(domains.sum())
    freedom = images**2 / float((domains**2 / clusters.freedom).sum()) if images else np.inf
    if seeds == 1:
        return Estimate(float(scores[0]), 0.0, images, 1, freedom)
    rest = float(((deviations - image_effects) ** 2).sum()) / (seeds - 1) / seeds
    return Estimate(
        mean=float(scores.mean()),
        seed_variance=float(scores.var(ddof=1)) / seeds,
        image_variance=max(0.0, images - rest),
        seeds=seeds,
        image_freedom=freedom,
    )


def interval(
    records: Sequence[Record], metric: str = "AA*", level: float = 0.95
) -> Interval | None:
    """The confidence interval of one method's expected score, from its records of several seeds.

    With one seed it covers the choice of test images only, and says so. It is None where the score
    is undefined or predictions are missing.
    """
    weights = weights_of(metric, records[0].test_counts)
    if weights is None or not has_predictions(records):
        return None
    in_order = sorted(records, key=lambda record: record.seed)  # a fixed order of sums
    clusters = clusters_of(in_order[0])
    found = estimate(contributions(in_order, weights), clusters)
    return found.score_interval(level, equal_groups(weights, clusters))


def equal_groups(weights: np.ndarray, clusters: Clusters) -> float:
    """The number of groups with equal say that a score rests on."""
    say = weights.sum(0) ** 2 / (clusters.freedom + 1)
    return float(weights.sum() ** 2 / say.sum())
