"""How far an observed score may be from the expected one.

The contribution of image x under seed s is taken as mean + seed effect + image effect + rest, with
images drawn independently within each domain and the same for all seeds. The variance of the mean
over S seeds is then

    (seed effect + rest) / S    estimated by the variance between seeds over S, S - 1 degrees of
                                freedom: few seeds say little about how much seeds matter
    image effect                estimated by the variance between images of their means over seeds,
                                less the part of it that is due to the rest

and the estimate over its standard error follows neither a normal nor a t distribution, but
something between. Its quantile is taken between the two, (1 - g) z + g t, with g = share ** 1.25
and share = the seeds' part of the variance. With exponent 1 this is Cochran's rule (Biometrics,
1964), which covers up to 98 % where 95 % are asked for; Satterthwaite's degrees of freedom cover
as little as 87 % with two seeds. Resampling seeds is worse: two seeds have no more than two values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsdil_bench.records.record import Record

from .outcomes import contributions, has_predictions, weights_of

_BLEND = 1.25


@dataclass(frozen=True)
class Interval:
    """A confidence interval in percentage points; `covers` says for what, in words."""

    low: float
    high: float
    level: float
    covers: str


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and images with the two parts of its variance."""

    mean: float
    seed_variance: float
    image_variance: float
    seeds: int

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

    def interval(self, level: float = 0.95) -> Interval:
        """The confidence interval."""
        half = self.error * self._quantile((1 - level) / 2) if self.error else 0.0
        return Interval(self.mean - half, self.mean + half, level, self.covers)

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
        from scipy.special import ndtri, stdtrit

        normal = -float(ndtri(tail))
        share = self.seed_variance / (self.seed_variance + self.image_variance)
        if share == 0:
            return normal
        blend = share**_BLEND
        return (1 - blend) * normal - blend * float(stdtrit(self.seeds - 1, tail))


def estimate(values: np.ndarray, counts: Sequence[int]) -> Estimate:
    """The estimate from contributions, one row per seed, of domains with `counts` images."""
    seeds = len(values)
    sizes = np.asarray(counts)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    freedom = np.maximum(sizes - 1, 1)

    def domain_sums(rows: np.ndarray) -> np.ndarray:
        return np.add.reduceat(rows, starts, axis=-1)

    domain_means = domain_sums(values) / sizes  # seeds x domains
    scores = domain_means.sum(1)
    centred = values - np.repeat(domain_means, sizes, axis=1)
    image_means = centred.mean(0)
    between_images = domain_sums(image_means**2) / freedom
    if seeds == 1:
        return Estimate(float(scores[0]), 0.0, float((between_images / sizes).sum()), 1)
    rest = domain_sums(((centred - image_means) ** 2).sum(0)) / freedom / (seeds - 1)
    return Estimate(
        mean=float(scores.mean()),
        seed_variance=float(scores.var(ddof=1)) / seeds,
        image_variance=max(0.0, float(((between_images - rest / seeds) / sizes).sum())),
        seeds=seeds,
    )


def interval(
    records: Sequence[Record], metric: str = "AA*", level: float = 0.95
) -> Interval | None:
    """The confidence interval of one method's expected score, from its records of several seeds.

    With one seed it covers the choice of test images only, and says so. It is None where the score
    is undefined or predictions are missing.
    """
    counts = records[0].test_counts
    weights = weights_of(metric, counts)
    if weights is None or not has_predictions(records):
        return None
    in_order = sorted(records, key=lambda record: record.seed)  # a fixed order of sums
    found = estimate(contributions(in_order, weights), counts).interval(level)
    return Interval(max(found.low, 0.0), min(found.high, 100.0), level, found.covers)
