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

from fsdil_bench.analysis.statistics import interval, paired_difference
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
    shares = np.add.reduceat(right.astype(float), [0, *ends[:-1]], axis=1) / COUNTS
    matrix = [row[: t + 1] for t, row in enumerate((100 * shares).tolist())]
    number = str(next(_number))
    domains = [
        {"name": f"d{i}", "test": n, "test_sha256": f"test{i}", "train_sha256": f"train{i}"}
        for i, n in enumerate(COUNTS)
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


#: The variance of the seed effect for its size as a multiple of what the test images contribute.
SEED_EFFECTS = {"none": 0.0, "half": 0.0015, "double": 0.025, "fivefold": 0.14}


def calibration(world: World, seeds: int, times: int, folder: Path) -> tuple[float, float]:
    """How often, in percent, the 95 % interval holds the true AA*, and how often two methods that
    are equal are found different."""
    generator = np.random.default_rng([seeds, times])
    true = expected("AA*")
    held = false_alarms = 0
    for _ in range(times):
        a, b = world.draw(generator, seeds, folder, (0.0, 0.0))
        found = interval(a)
        held += found.low <= true <= found.high
        false_alarms += paired_difference(a, b).p < 0.05
    return 100 * held / times, 100 * false_alarms / times


def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        print("| seeds |", " | ".join(SEED_EFFECTS), "|")
        print("|---|" + "---|" * len(SEED_EFFECTS))
        for seeds in (2, 3, 5, 10, 1):
            found = [
                calibration(World(seed=effect), seeds, times, Path(name))
                for effect in SEED_EFFECTS.values()
            ]
            cells = [f"{held:.1f}, {false_alarms:.1f}" for held, false_alarms in found]
            print(f"| {seeds} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
