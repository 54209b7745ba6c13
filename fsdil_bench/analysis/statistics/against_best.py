"""Which rows of a board are not distinguishable from the best, and what the board could have seen.

The best row is picked from the data, so a test of each row against it is not enough: of many equal
rows, the luckiest leads by more than chance allows one row. Here all pairs of rows are judged at
once. The largest of all differences (in standard errors) is compared with what it would be if all
rows were equally good; rows that are further behind are worse, and the question is asked again
about the rest, until none is left out (a model confidence set; Hansen, Lunde and Nason 2011).

What the largest difference would be is drawn from normal distributions: effects of test images with
their joint covariance over rows, and effects of seeds. Every draw estimates the variances again, so
few seeds and few groups make the limit larger. The draws are always the same ones.

Three seeds say little about the variance of one row. Each row's seed variance is therefore drawn
towards the mean over rows, which counts as `_PRIOR` degrees of freedom. This assumes that methods
on a board depend on seeds to a similar degree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Generic, TypeVar

import numpy as np

from fsdil_bench.records.record import Record

from .clusters import Clusters
from .outcomes import clusters_of, contributions, has_predictions, weights_of

K = TypeVar("K", bound=tuple[str, ...] | str)

# Chosen by simulation, not derived: docs/statistics.md says on which worlds. Do not tune them on
# the worlds of tests/fresh_worlds.py.
_PRIOR = 1.0
_CAP = 4.0  # in the mean over rows, no variance counts for more than so many times their median
_DRAWS = 1000
_POWER = 0.8
_TINY = 1e-12  # a variance that is none


@dataclass(frozen=True)
class Standing(Generic[K]):
    """The verdicts on the rows of a board for one score.

    "worse": another row is better. "best": no row is known to be better. "undecided": no row is
    known to be better, but the row lies further from the best mean than `smallest_difference`, or
    the smallest difference that could have been seen for this row is more than twice as large.

    `smallest_difference` is the number of points that two typical rows must differ by for the board
    to call one of them worse with a chance of 80 %. It is None for fewer than two rows.
    """

    verdicts: dict[K, str]
    smallest_difference: float | None


def standing(
    rows: Mapping[K, Sequence[Record]], metric: str = "AA*", level: float = 0.95
) -> Standing[K]:
    """Judge the rows of a board; rows without predictions or without the score are left out.

    If rows are equally good, the chance that any of them is called worse is 1 - level.
    """
    found = _values(rows, metric)
    if found is None:
        return Standing({}, None)
    labels, values, clusters = found
    verdicts, smallest = judge(values, clusters, level)
    return Standing(dict(zip(labels, verdicts, strict=True)), smallest)


def distinguishable(
    rows: Mapping[K, Sequence[Record]], metric: str = "AA*", level: float = 0.95
) -> float | None:
    """The share of the pairs of rows that are known to differ, judged all at once: if rows are
    equally good, the chance that any pair is found to differ is 1 - level. None for fewer than two
    rows."""
    found = _values(rows, metric)
    if found is None or len(found[0]) < 2:
        return None
    _, values, clusters = found
    board = _Board.of(values, clusters)
    apart = board.leads > _limit(board.drawn_leads(), level)
    return float(apart.sum() / (len(values) * (len(values) - 1) / 2))


def _values(
    rows: Mapping[K, Sequence[Record]], metric: str
) -> tuple[list[K], np.ndarray, Clusters] | None:
    """The labels of rows with predictions, in order, their contributions (rows x seeds x images,
    NaN for runs that are missing) and the groups of images; None without such rows or score."""
    known = {label: list(own) for label, own in sorted(rows.items()) if has_predictions(own)}
    first = next(iter(known.values()), None)
    weights = weights_of(metric, first[0].test_counts) if first else None
    if first is None or weights is None:
        return None
    seeds = sorted({record.seed for own in known.values() for record in own})
    values = np.full((len(known), len(seeds), sum(first[0].test_counts)), np.nan)
    for row, own in zip(values, known.values(), strict=True):
        row[[seeds.index(record.seed) for record in own]] = contributions(own, weights)
    return [*known], values, clusters_of(first[0])


def judge(
    values: np.ndarray, clusters: Clusters, level: float = 0.95
) -> tuple[list[str], float | None]:
    """Verdicts from contributions (rows x seeds x images, NaN for runs that are missing)."""
    if len(values) < 2:
        return ["best"] * len(values), None
    board = _Board.of(values, clusters)
    means, leads = board.means, board.leads
    errors = np.sqrt(board.variances)
    drawn = board.drawn_leads()
    critical = _limit(drawn, level)
    left = np.arange(len(means))
    limit = critical
    while (behind := leads[np.ix_(left, left)].max(1) > limit).any():
        left = left[~behind]
        limit = _limit(drawn[:, left][:, :, left], level) if len(left) > 1 else np.inf
    others = ~np.eye(len(means), dtype=bool)
    typical = np.array([np.median(own[other]) for own, other in zip(errors, others, strict=True)])
    visible = (critical + NormalDist().inv_cdf(_POWER)) * typical
    smallest = float(np.median(visible))
    unclear = (means.max() - means > smallest) | (visible > 2 * smallest)
    verdicts = np.where(unclear, "undecided", "best").astype(object)
    verdicts[np.setdiff1d(np.arange(len(means)), left)] = "worse"
    return verdicts.tolist(), smallest


def _limit(drawn: np.ndarray, level: float) -> float:
    return float(np.quantile(drawn.max((1, 2)), level))


@dataclass(frozen=True, eq=False)
class _Board:
    """The means of all rows and where their uncertainty comes from.

    `share` is what each seed counts for in the mean of each row (rows x seeds, zero where a run is
    missing). `image_root` is a root of the covariance that test images cause, and `image_freedom`
    its degrees of freedom. `row_variances` are those between the seeds of each row beyond what the
    seeds do to all rows, and `seed_variance` is the variance of the latter.
    """

    means: np.ndarray
    share: np.ndarray
    image_root: np.ndarray
    image_freedom: float
    row_variances: np.ndarray
    seed_variance: float

    @classmethod
    def of(cls, values: np.ndarray, clusters: Clusters) -> _Board:
        there = ~np.isnan(values[..., 0])
        values = np.where(there[..., None], values, 0.0)
        number = there.sum(1)
        share = there / number[:, None]
        scores = clusters.means(values).sum(-1)
        deviations = clusters.deviations(values)
        image_effects = (deviations * share[..., None]).sum(1)
        covariance = image_effects @ image_effects.T
        # What varies from seed to seed is in the variance between seeds already.
        scale = (
            there / np.sqrt(np.maximum(number * (number - 1), 1))[:, None] * (number > 1)[:, None]
        )
        rest = ((deviations - image_effects[:, None]) * scale[..., None]).reshape(len(values), -1)
        parts, axes = np.linalg.eigh(covariance - rest @ rest.T)
        domains = clusters.by_domain(image_effects**2).sum(0)
        freedom = domains.sum() ** 2 / max((domains**2 / clusters.freedom).sum(), _TINY**2)
        row_variances, seed_effects = _seed_parts(scores, share)
        return cls(
            (scores * share).sum(1),
            share,
            (axes * np.sqrt(np.maximum(parts, 0))) @ axes.T,
            max(1.0, float(freedom)),
            row_variances,
            float(seed_effects.var(ddof=1)) if len(seed_effects) > 1 else 0.0,
        )

    @property
    def image_variances(self) -> np.ndarray:
        """The variance of the difference of two rows that test images cause."""
        covariance = self.image_root @ self.image_root.T
        own = np.diag(covariance)
        return np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0)

    @property
    def unshared(self) -> np.ndarray:
        """How much of the seeds' effects on all rows is left in the difference of two rows."""
        apart: np.ndarray = ((self.share[:, None] - self.share[None, :]) ** 2).sum(-1)
        return apart

    def seed_variances(self, row_variances: np.ndarray) -> np.ndarray:
        """The variance of the difference of two rows that seeds cause."""
        own = row_variances * (self.share**2).sum(1)
        found: np.ndarray = own[..., :, None] + own[..., None, :]
        return found + self.seed_variance * self.unshared

    @property
    def variances(self) -> np.ndarray:
        """The variance of the difference of two rows."""
        return self.image_variances + self.seed_variances(self.row_variances) + _TINY

    @property
    def leads(self) -> np.ndarray:
        """How far row j leads row i, in standard errors."""
        found: np.ndarray = (self.means[None, :] - self.means[:, None]) / np.sqrt(self.variances)
        return found

    def drawn_leads(self) -> np.ndarray:
        """How far each row would lead each other one, in standard errors, if all were equal."""
        generator = np.random.default_rng(0)
        rows, seeds = self.share.shape
        images = generator.normal(size=(_DRAWS, rows)) @ self.image_root
        noise = generator.normal(size=(_DRAWS, rows, seeds)) * np.sqrt(self.row_variances)[:, None]
        if freedom := int((seeds - 1) * (rows - 1)):  # the seeds' part may be larger than estimated
            noise *= np.sqrt(freedom / generator.chisquare(freedom, (_DRAWS, 1, 1)))
        common = generator.normal(size=(_DRAWS, 1, seeds)) * np.sqrt(self.seed_variance)
        size = generator.chisquare(self.image_freedom, (_DRAWS, 1, 1)) / self.image_freedom
        means = images + ((noise + common) * self.share).sum(-1)
        again, _ = _seed_parts(noise, self.share)
        variances = self.image_variances * size + self.seed_variances(again) + _TINY
        leads: np.ndarray = (means[:, None, :] - means[:, :, None]) / np.sqrt(variances)
        return leads


def _seed_parts(scores: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The variance between the seeds of each row, drawn towards their mean, and what each seed adds
    to all rows. `scores` are rows x seeds, after any number of axes.

    Medians and a cap keep one row that depends on seeds far more than the rest from hiding all.
    """
    there = share > 0
    rest = np.where(there, scores, 0.0)
    seed_effects = np.zeros((*scores.shape[:-2], 1, scores.shape[-1]))
    for _ in range(1 if there.all() else 3):  # runs that are missing take a few rounds
        rest = (rest - (rest * share).sum(-1, keepdims=True)) * there
        if there.all():
            step = np.median(rest, axis=-2, keepdims=True)
        else:
            step = np.nanmedian(np.where(there, rest, np.nan), axis=-2, keepdims=True)
        seed_effects = seed_effects + step
        rest = (rest - step) * there
    rest = (rest - (rest * share).sum(-1, keepdims=True)) * there
    freedom = (there.sum(1) - 1) * (1 - 1 / len(there))
    squares = (rest**2).sum(-1)
    several = freedom > 0
    if not several.any():
        return np.zeros_like(squares), seed_effects[..., 0, :]
    own = squares[..., several] / freedom[several]
    capped = np.minimum(own, _CAP * np.median(own, axis=-1, keepdims=True))
    pooled = (capped * freedom[several]).sum(-1, keepdims=True) / freedom.sum()
    variances = (squares + _PRIOR * pooled) / (freedom + _PRIOR)
    return variances, seed_effects[..., 0, :]
