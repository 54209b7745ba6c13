"""Records of made-up methods whose expected scores are known, to try the statistics on.

An image is right where a sum of normal variables is positive: the domain's level, an effect of the
image (the same for all seeds), of the seed (the same for all images, in part for its domain alone),
of both, and of the step. The sum of their variances is one, so the expected accuracy of a domain is
the normal distribution function at its level, and expected scores follow exactly.

Run as a script, it prints how often intervals cover and tests reject (a few minutes).
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import NormalDist

import numpy as np

from fsdil_bench.metrics import scores
from fsdil_bench.record import PREDICTIONS_FILE, Record

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
    """How much seeds, images and chance matter; `alike` is what two methods share of each."""

    seed: float = 0.0
    image: float = 0.6
    step: float = 0.1
    alike: float = 0.7

    def draw(self, generator: np.random.Generator, seeds: int, folder: Path, shifts=(0.0,)):
        """For each shift of the levels, a method: its records of all seeds."""
        images, steps = sum(COUNTS), len(COUNTS)
        domains = np.repeat(np.arange(steps), COUNTS)
        image = self._pair(generator, (1, 1, images), len(shifts))
        seed = self._pair(generator, (seeds, 1, 1), len(shifts))
        own = self._pair(generator, (seeds, 1, steps), len(shifts))
        rest = self._pair(generator, (seeds, 1, images), len(shifts))
        chance = generator.normal(size=(len(shifts), seeds, steps, images))
        left = 1 - self.seed - self.image - self.step
        sums = (
            np.sqrt(self.image) * image
            + np.sqrt(self.seed / 2) * (seed + own[..., domains])
            + np.sqrt(left) * rest
            + np.sqrt(self.step) * chance
        )
        levels = np.asarray(LEVELS)[domains]
        return [
            [record(sums[m, s] + levels + shift > 0, s, f"method{m}", folder) for s in range(seeds)]
            for m, shift in enumerate(shifts)
        ]

    def _pair(self, generator, shape, methods):
        shared = generator.normal(size=(1, *shape))
        own = generator.normal(size=(methods, *shape))
        return np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * own


def record(right: np.ndarray, seed: int, method: str, folder: Path) -> SimulatedRecord:
    """A record with these images right (a row per step; later domains are ignored)."""
    (folder / PREDICTIONS_FILE).touch()
    ends = np.cumsum(COUNTS)
    labels = np.zeros(ends[-1], dtype=np.int32)
    classes = {f"classes_{t}": (~row[: ends[t]]).astype(np.int32) for t, row in enumerate(right)}
    parts = [np.split(row, ends[:-1]) for row in right]
    matrix = [[100 * float(part.mean()) for part in row[: t + 1]] for t, row in enumerate(parts)]
    number = str(next(_number))
    domains = [
        {"name": f"d{i}", "test": n, "test_sha256": f"test{i}"} for i, n in enumerate(COUNTS)
    ]
    return SimulatedRecord(
        run_id=number,
        spec={"method": method, "scenario": "made-up-1shot", "seed": seed, "backbone": "none"},
        scenario={"domains": domains, "classes": ["right", "wrong"]},
        matrix=matrix,
        metrics=scores(matrix, COUNTS),
        cost={},
        provenance={},
        predictions_sha256=number,
        method={"weights": "none"},
        folder=folder,
        arrays={"labels": labels, **classes},
    )


def expected(metric: str, shift: float = 0.0) -> float:
    """The true score."""
    accuracies = [100 * NormalDist().cdf(level + shift) for level in LEVELS]
    value = scores([accuracies] * len(LEVELS), COUNTS)[metric]
    assert value is not None
    return value


#: Variance of the seed effect, from none to well above that of the test images; and how the same
#: is said in words.
SEED_EFFECTS = {"none": 0.0, "half": 0.0015, "equal": 0.006, "double": 0.025, "fivefold": 0.14}


def coverage(world: World, seeds: int, times: int, folder: Path, metric="AA*", name="") -> float:
    """How often the 95 % interval holds the true score, in percent."""
    from fsdil_bench.statistics import interval

    generator = np.random.default_rng([seeds, times, *name.encode()])
    true = expected(metric)
    found = (interval(world.draw(generator, seeds, folder)[0], metric) for _ in range(times))
    return 100 * np.mean([each.low <= true <= each.high for each in found])


def rejections(world: World, seeds: int, times: int, folder: Path, metric="AA*", name="") -> float:
    """How often two methods of the same expected score are told apart, in percent."""
    from fsdil_bench.statistics import compare

    generator = np.random.default_rng([seeds, times, *name.encode(), 1])
    pairs = (world.draw(generator, seeds, folder, (0.0, 0.0)) for _ in range(times))
    return 100 * np.mean([compare(a, b, metric).p < 0.05 for a, b in pairs])


def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| seeds |", " | ".join(SEED_EFFECTS), "|", " | ".join(SEED_EFFECTS), "|")
        for seeds in (1, 2, 3, 5, 10):
            worlds = [World(seed=effect) for effect in SEED_EFFECTS.values()]
            cells = [coverage(world, seeds, times, folder) for world in worlds]
            cells += [rejections(world, seeds, times, folder) for world in worlds]
            print(f"| {seeds} |", " | ".join(f"{cell:.1f}" for cell in cells), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
