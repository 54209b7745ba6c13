"""Records of made-up methods whose expected scores are known, to try the statistics on.

An image is right where a sum of variables is positive: the domain's level, an effect of the image
(the same for all seeds), of the seed (the same for all images, in part for its domain alone), of
both, and of the step. The variances sum to one, so the expected accuracy of a domain is the normal
distribution function at its level, and expected scores follow exactly.

Images may come in groups of near copies, and seed effects may be skewed: most seeds are a little
better than the mean, and a few are much worse.

Run as a script, it prints the tables of docs/statistics.md (about ten minutes): how often intervals
cover, tests reject and boards call a row worse, with the formulas of the package and with those
that know neither groups nor bounds and test every row against the best one.

Constants of the statistics were chosen on these worlds; `fresh_worlds` has others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import false_discovery_control

from fsdil_bench.analysis.statistics import Clusters, weights_of
from fsdil_bench.analysis.statistics.against_best import judge
from fsdil_bench.analysis.statistics.uncertainty import equal_groups, estimate
from fsdil_bench.records.metrics import scores
from fsdil_bench.records.record import PREDICTIONS_FILE, Record

COUNTS = (120, 80, 100)
LEVELS = (1.0, 0.5, 0.2)
_number = count()


@dataclass(frozen=True)
class SimulatedRecord(Record):
    """A record that holds its predictions."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def predictions(self):
        return self.arrays


@dataclass(frozen=True)
class World:
    """How much seeds, images and chance matter; `alike` is what two methods share of each.

    `copies` is the number of images in a group, which share 95 % of the effects of images. Where
    seed effects are `skewed`, they come on top of a variance of one. `factors` multiply the
    variance of the seed effect of each method; its levels are scaled so that its expected score
    stays.
    """

    seed: float = 0.0
    image: float = 0.6
    step: float = 0.1
    alike: float = 0.7
    counts: tuple[int, ...] = COUNTS
    levels: tuple[float, ...] = LEVELS
    copies: int = 1
    skewed: bool = False
    factors: tuple[float, ...] = ()

    @property
    def groups(self) -> np.ndarray | None:
        """The group of every image."""
        return None if self.copies == 1 else np.arange(sum(self.counts)) // self.copies

    @property
    def clusters(self) -> Clusters:
        return Clusters.of(self.counts, self.groups)

    @property
    def weights(self) -> np.ndarray:
        """The weights of AA*."""
        return weights_of("AA*", self.counts)

    def right(self, generator: np.random.Generator, seeds: int, shifts=(0.0,)) -> np.ndarray:
        """Which images are right: methods (one for each shift) x seeds x steps x images."""
        methods, images, steps = len(shifts), sum(self.counts), len(self.counts)
        domains = np.repeat(np.arange(steps), self.counts)
        draw = self._skewed_pair if self.skewed else self._pair
        factors = np.asarray(self.factors or (1.0,) * methods)[:, None, None, None]
        left = 1 - self.image - self.step - (0 if self.skewed else self.seed)
        of_seed = draw(generator, (seeds, 1, 1), methods)
        of_seed = of_seed + draw(generator, (seeds, 1, steps), methods)[..., domains]
        sums = (
            np.sqrt(self.image) * self._in_groups(generator, (1, 1, images), methods)
            + np.sqrt(factors * self.seed / 2) * of_seed
            + np.sqrt(left) * self._in_groups(generator, (seeds, 1, images), methods)
            + np.sqrt(self.step) * generator.normal(size=(methods, seeds, steps, images))
        )
        scale = np.sqrt(1 + (factors - 1) * self.seed)
        levels = np.asarray(self.levels)[domains] + np.asarray(shifts)[:, None, None, None]
        return sums + scale * levels > 0

    def draw(self, generator: np.random.Generator, seeds: int, folder: Path, shifts=(0.0,)):
        """For each shift of the levels, a method: its records of all seeds."""
        return [
            [
                record(right, s, f"method{m}", folder, self.counts, self.groups)
                for s, right in enumerate(own)
            ]
            for m, own in enumerate(self.right(generator, seeds, shifts))
        ]

    def earned(self, generator: np.random.Generator, seeds: int, shifts=(0.0,)) -> np.ndarray:
        """What each image adds to AA*: methods x seeds x images. This needs no records."""
        weights = 100 * np.repeat(self.weights, self.counts, axis=1)
        return np.einsum("mstn,tn->msn", self.right(generator, seeds, shifts), weights)

    def expected(self, shift: float = 0.0) -> float:
        """The true AA*."""
        return _expected(self, shift)

    def _pair(self, generator, shape, methods):
        shared = generator.normal(size=(1, *shape))
        own = generator.normal(size=(methods, *shape))
        return np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * own

    def _skewed_pair(self, generator, shape, methods):
        shared = 1 - generator.exponential(size=(1, *shape))
        own = 1 - generator.exponential(size=(methods, *shape))
        return np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * own

    def _in_groups(self, generator, shape, methods):
        alone = self._pair(generator, shape, methods)
        if self.copies == 1:
            return alone
        of_group = self._pair(generator, (*shape[:-1], shape[-1] // self.copies), methods)
        return np.sqrt(0.95) * np.repeat(of_group, self.copies, axis=-1) + np.sqrt(0.05) * alone


@cache
def _expected(world: World, shift: float) -> float:
    say = world.weights.sum(0)
    if not world.skewed:
        return float(100 * (say * ndtr(np.asarray(world.levels) + shift)).sum())
    generator = np.random.default_rng(0)
    size = np.sqrt(world.seed / 2)
    common = world._skewed_pair(generator, (300_000,), 1)[0]
    total = 0.0
    for share, level in zip(say, world.levels, strict=True):
        effect = size * (common + world._skewed_pair(generator, (300_000,), 1)[0])
        total += share * float(ndtr(level + shift + effect).mean())
    return 100 * total


def record(
    right: np.ndarray, seed: int, method: str, folder: Path, counts=COUNTS, groups=None
) -> SimulatedRecord:
    """A record with these images right (a row per step; later domains are ignored)."""
    (folder / PREDICTIONS_FILE).touch()
    ends = np.cumsum(counts)
    labels = np.zeros(ends[-1], dtype=np.int32)
    classes = {f"classes_{t}": (~row[: ends[t]]).astype(np.int32) for t, row in enumerate(right)}
    shares = np.add.reduceat(right.astype(float), [0, *ends[:-1]], axis=1) / counts
    matrix = [row[: t + 1] for t, row in enumerate((100 * shares).tolist())]
    number = f"simulated {next(_number)}"
    domains = [
        {"name": f"d{i}", "test": n, "test_sha256": f"test{i}", "train_sha256": f"train{i}"}
        for i, n in enumerate(counts)
    ]
    return SimulatedRecord(
        run_id=number,
        spec={
            "method": method,
            "scenario": "made-up-1shot",
            "seed": seed,
            "backbone": "none",
            "base_limit": None,
            "order": [domain["name"] for domain in domains],
            "precision": "fp32",
            "scenario_options": {},
        },
        scenario={"domains": domains, "classes": ["right", "wrong"], "transform": {}},
        matrix=matrix,
        metrics=scores(matrix, counts),
        cost={},
        provenance={},
        predictions_sha256=number,
        method={"weights": "none"},
        folder=folder,
        arrays={
            "labels": labels,
            "domains": np.repeat(np.arange(len(counts)), counts),
            **classes,
            **({} if groups is None else {"groups": groups.astype(np.int32)}),
        },
    )


def expected(metric: str, shift: float = 0.0) -> float:
    """The true score of the default world."""
    accuracies = [100 * NormalDist().cdf(level + shift) for level in LEVELS]
    value = scores([accuracies] * len(LEVELS), COUNTS)[metric]
    assert value is not None
    return value


# --- How often is it right? ---

#: The variance of the seed effect for its size as a multiple of what the test images contribute.
SEED_EFFECTS = {"none": 0.0, "half": 0.0015, "double": 0.025, "fivefold": 0.14}


def new_interval(values: np.ndarray, world: World) -> tuple[float, float]:
    clusters = world.clusters
    found = estimate(values, clusters).score_interval(0.95, equal_groups(world.weights, clusters))
    return found.low, found.high


def plain_interval(values: np.ndarray, world: World) -> tuple[float, float]:
    """Every image counts as independent, and bounds only cut the interval off."""
    found = estimate(values, Clusters.of(world.counts)).interval(0.95)
    return max(found.low, 0.0), min(found.high, 100.0)


def new_test(values: np.ndarray, world: World) -> float:
    return estimate(values, world.clusters).p_value()


def plain_test(values: np.ndarray, world: World) -> float:
    return estimate(values, Clusters.of(world.counts)).p_value()


def calibration(
    world: World, seeds: int, times: int, interval=new_interval, test=new_test
) -> tuple[float, float]:
    """How often, in percent, the 95 % interval holds the true AA*, and how often two methods that
    are equal are found different."""
    generator = np.random.default_rng([seeds, times])
    true = world.expected()
    held = false_alarms = 0
    for _ in range(times):
        a, b = world.earned(generator, seeds, (0.0, 0.0))
        low, high = interval(a, world)
        assert 0 <= low <= high <= 100
        held += low <= true <= high
        false_alarms += test(a - b, world) < 0.05
    return 100 * held / times, 100 * false_alarms / times


def coverage(world: World, seeds: int, times: int, interval=new_interval) -> float:
    """How often, in percent, the 95 % interval holds the true AA*."""
    return calibration(world, seeds, times, interval, lambda values, world: 1.0)[0]


def new_verdicts(values: np.ndarray, world: World) -> np.ndarray:
    return np.array(judge(values, world.clusters)[0])


def plain_verdicts(values: np.ndarray, world: World) -> np.ndarray:
    """Every row tested against the best mean, corrected after Benjamini and Hochberg."""
    best = int(values.mean((1, 2)).argmax())
    others = np.delete(np.arange(len(values)), best)
    p_values = [plain_test(values[best] - values[i], world) for i in others]
    verdicts = np.full(len(values), "best", dtype=object)
    verdicts[others[false_discovery_control(p_values) <= 0.05]] = "worse"
    return verdicts


def false_boards(
    world: World, seeds: int, methods: int, times: int, verdicts: Callable = new_verdicts
) -> float:
    """The percentage of boards of equal methods that call any of them worse."""
    generator = np.random.default_rng([seeds, methods, times])
    found = (
        verdicts(world.earned(generator, seeds, (0.0,) * methods), world) for _ in range(times)
    )
    return 100 * sum((each == "worse").any() for each in found) / times


def power(
    world: World, seeds: int, methods: int, times: int, points: float, verdicts=new_verdicts
) -> tuple[float, float]:
    """One method is better than all others by `points`: the percentage of the others that are
    called worse, and of those that are undecided."""
    generator = np.random.default_rng([seeds, methods, times, 1])
    shifts = (shift_by(world, points), *(0.0,) * (methods - 1))
    called = [verdicts(world.earned(generator, seeds, shifts), world)[1:] for _ in range(times)]
    table = np.array(called)
    return 100 * float((table == "worse").mean()), 100 * float((table == "undecided").mean())


def shift_by(world: World, points: float) -> float:
    """The shift of levels that makes a method better by so many points of AA*."""
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        if world.expected(middle) - world.expected() < points:
            low = middle
        else:
            high = middle
    return low


# --- The worlds of the tables ---


def frames(groups: int, seed: float) -> World:
    """Three domains of so many groups of 20 near copies each."""
    return World(seed=seed, counts=(20 * groups,) * 3, copies=20)


def large(seed: float) -> World:
    """As many test images as the boards of `drawn` have, nearly."""
    return World(seed=seed, counts=(800,) * 3)


def near(score: float, seed: float) -> World:
    """A world with an AA* of about `score` and skewed seed effects."""
    middle = float(ndtri(score / 100)) - 0.15
    return World(seed=seed, levels=(middle + 0.3, middle, middle - 0.2), skewed=True)


def uneven(methods: int, seed: float, factor: float = 9.0) -> World:
    """Every fifth method has so many times the seed variance of the other ones."""
    return World(
        seed=seed, image=0.4, factors=tuple(1.0 if m % 5 else factor for m in range(methods))
    )


def _print(
    title: str, heads: Sequence[object], rows: Sequence[tuple[object, Sequence[str]]]
) -> None:
    print(f"\n{title}\n\n| {' | '.join(map(str, heads))} |\n|{'---|' * len(heads)}")
    for name, cells in rows:
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _both(found: tuple[float, float]) -> str:
    return f"{found[0]:.1f}, {found[1]:.1f}"


def main(times: int) -> None:
    """Print all tables."""
    boards = times // 5
    _print(
        f"coverage, false positives; {times} tries each",
        ["seeds", *SEED_EFFECTS],
        [
            (s, [_both(calibration(World(seed=e), s, times)) for e in SEED_EFFECTS.values()])
            for s in (2, 3, 5, 10, 1)
        ],
    )
    for name, how in (("plain", (plain_interval, plain_test)), ("new", (new_interval, new_test))):
        _print(
            f"groups of 20 near copies, {name}; {boards} tries each",
            ["groups per domain", "seed effect", *(f"{s} seeds" for s in (2, 3, 5, 10))],
            [
                (f"{g} | {e}", [_both(calibration(frames(g, SEED_EFFECTS[e]), s, boards, *how))
                                for s in (2, 3, 5, 10)])
                for g in (10, 30, 100) for e in ("none", "double")
            ],
        )  # fmt: skip
    for name, interval in (("plain", plain_interval), ("new", new_interval)):
        _print(
            f"coverage with skewed seeds, {name}; {times} tries each",
            ["seeds", "seed effect", *(f"AA* {score}" for score in SCORES)],
            [
                (f"{s} | {e}", [f"{coverage(near(score, SEED_EFFECTS[e]), s, times, interval):.1f}"
                                for score in SCORES])
                for s in (3, 5, 10) for e in ("double", "fivefold")
            ],
        )  # fmt: skip
    _print(
        f"boards of equal methods that call any worse, plain -> new; {boards} boards each",
        ["methods", "seed effect", "2 seeds", "3 seeds", "5 seeds", "3 seeds, uneven"],
        [
            (f"{m} | {e}", [_change(false_boards, world, s, m, boards)
                            for s, world in ((2, World(seed=SEED_EFFECTS[e])),
                                             (3, World(seed=SEED_EFFECTS[e])),
                                             (5, World(seed=SEED_EFFECTS[e])),
                                             (3, uneven(m, SEED_EFFECTS[e])))])
            for m in (5, 15, 30) for e in ("none", "half", "double")
        ],
    )  # fmt: skip
    _print(
        f"one method 3 points better: others called worse, plain -> new (undecided); {boards // 10}"
        " boards each",
        ["methods", "seed effect", "3 seeds", "5 seeds"],
        [
            (f"{m} | {e}", [_powers(large(SEED_EFFECTS[e]), s, m, boards // 10)
                            for s in (3, 5)])
            for m in (5, 15, 30) for e in ("none", "half", "double")
        ],
    )  # fmt: skip


SCORES = (50, 80, 95, 99)


def _change(measure: Callable, *args) -> str:
    return f"{measure(*args, plain_verdicts):.0f} → {measure(*args):.0f}"


def _powers(world: World, seeds: int, methods: int, times: int) -> str:
    old, _ = power(world, seeds, methods, times, 3.0, plain_verdicts)
    new, undecided = power(world, seeds, methods, times, 3.0)
    return f"{old:.0f} → {new:.0f} ({undecided:.0f})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
