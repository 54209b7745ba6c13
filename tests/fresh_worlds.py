"""Worlds on which no constant of the statistics was chosen, to check them honestly.

The worlds of `simulated` were there when `_BLEND`, `_SKEW`, `_FEW_ERRORS`, `_PRIOR` and `_CAP` were
chosen. These were written down afterwards, before any result on them was seen (with "half" and
"double" seed effects; "fivefold" was added after that). Do not adjust them, and do not choose a
constant on them: then they would show nothing.

Run as a script, it appends one line per cell to a file and prints the table of docs/statistics.md
from it. Cells that the file has are not run again:

    python tests/fresh_worlds.py CELLS.jsonl [world ...]
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import beta
from simulated import SEED_EFFECTS, World, calibration, false_boards

TRIES, BOARDS = 400, 200


@dataclass(frozen=True)
class HeavySeeds(World):
    """Seed effects with long tails on both sides: Student's t with three degrees of freedom."""

    skewed: bool = True  # on top of a variance of one
    alike: float = 0.5

    def _effects(self, generator, shape):
        return generator.standard_t(3, size=shape) / np.sqrt(3)

    def _skewed_pair(self, generator, shape, methods):
        shared = self._effects(generator, (1, *shape))
        own = self._effects(generator, (methods, *shape))
        return np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * own


@dataclass(frozen=True)
class LognormalSeeds(HeavySeeds):
    """Most seeds are a little better than the mean, and a few are far worse (skewness 6)."""

    def _effects(self, generator, shape):
        drawn = np.exp(generator.normal(size=shape))
        return (np.exp(0.5) - drawn) / np.sqrt((np.e - 1) * np.e)


@dataclass(frozen=True)
class UnequalGroups(World):
    """40 groups per domain with geometric sizes from 1 to 60; in a group, the effects of images
    have a correlation of 0.7."""

    alike: float = 0.5
    sizes: tuple[int, ...] = ()

    @property
    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def _in_groups(self, generator, shape, methods):
        of_group = self._pair(generator, (*shape[:-1], len(self.sizes)), methods)
        alone = self._pair(generator, shape, methods)
        return np.sqrt(0.7) * of_group[..., self.groups] + np.sqrt(0.3) * alone


def unequal_groups(seed: float) -> UnequalGroups:
    sizes = np.minimum(np.random.default_rng(0).geometric(1 / 12, (3, 40)), 60)
    counts = tuple(sizes.sum(1).tolist())
    return UnequalGroups(seed=seed, counts=counts, sizes=tuple(sizes.ravel().tolist()))


@dataclass(frozen=True)
class Difficulty(World):
    """Four domains of very different size. How often an image is right has a beta distribution
    with most of its mass at the ends; methods share half of it. Seeds shift its logit, and every
    further step lowers it by 0.15."""

    alike: float = 0.5
    counts: tuple[int, ...] = (40, 400, 150, 90)
    levels: tuple[float, ...] = (0.9, 0.75, 0.6, 0.45)  # mean accuracies

    def right(self, generator, seeds, shifts=(0.0,)):
        assert not any(shifts)
        methods, steps = len(shifts), len(self.counts)
        domains = np.repeat(np.arange(steps), self.counts)
        effects = self._pair(generator, (sum(self.counts),), methods)
        logits = np.concatenate(
            [
                np.interp(part, *_quantiles(level))
                for part, level in zip(
                    np.split(effects, np.cumsum(self.counts)[:-1], axis=1), self.levels, strict=True
                )
            ],
            axis=1,
        )
        of_seed = self._pair(generator, (seeds, 1), methods)
        of_seed = of_seed + self._pair(generator, (seeds, steps), methods)[..., domains]
        chance = generator.random(size=(methods, seeds, 1, len(domains)))
        moved = logits[:, None] + 1.7 * np.sqrt(self.seed / 2) * of_seed
        late = np.maximum(np.arange(steps)[:, None] - domains, 0)
        return chance < expit(moved[:, :, None] - 0.15 * late)

    def expected(self, shift: float = 0.0) -> float:
        return _expected_difficulty(self)


@cache
def _quantiles(mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the beta distribution with this mean, by the normal variable that decides them."""
    grid = np.linspace(-6, 6, 4001)
    shares = beta.ppf(ndtr(grid), 1.5 * mean, 1.5 * (1 - mean))
    return grid, logit(np.clip(shares, 1e-9, 1 - 1e-9))


@cache
def _expected_difficulty(world: Difficulty) -> float:
    generator = np.random.default_rng(0)
    effects, of_seed = generator.normal(size=(2, 1_000_000))
    total = 0.0
    for i, level in enumerate(world.levels):
        logits = np.interp(effects, *_quantiles(level)) + 1.7 * np.sqrt(world.seed) * of_seed
        for t in range(i, len(world.levels)):
            total += world.weights[t, i] * float(expit(logits - 0.15 * (t - i)).mean())
    return 100 * total


WORLDS = {
    "t seeds": lambda seed: HeavySeeds(seed=seed),
    "lognormal seeds": lambda seed: LognormalSeeds(seed=seed),
    "unequal groups": unequal_groups,
    "beta difficulty": lambda seed: Difficulty(seed=seed),
}
EFFECTS = ("half", "double", "fivefold")
CELLS = [
    (effect, seeds, methods)
    for effect in EFFECTS
    for methods in (0, 5, 15, 30)  # zero: intervals and paired tests
    for seeds in (3, 5)
]


def run(file: Path, names: list[str]) -> None:
    """Run the cells that are missing."""
    done = {tuple(cell["cell"]) for cell in _read(file)}
    for effect, seeds, methods in CELLS:
        for name in names:
            cell = (name, effect, seeds, methods)
            if cell in done:
                continue
            world = WORLDS[name](SEED_EFFECTS[effect])
            found = (
                [false_boards(world, seeds, methods, BOARDS)]
                if methods
                else list(calibration(world, seeds, TRIES))
            )
            with file.open("a") as out:
                print(json.dumps({"cell": cell, "found": found}), file=out)


def table(file: Path) -> None:
    """Print what the file has, a line for each world, seed effect and number of seeds."""
    found = {tuple(cell["cell"]): cell["found"] for cell in _read(file)}
    for name in WORLDS:
        for effect in EFFECTS:
            for seeds in (3, 5):
                cells = [found.get((name, effect, seeds, m)) for m in (0, 5, 15, 30)]
                numbers = [f"{value:.1f}" for cell in cells for value in cell or ()]
                print(f"| {name} | {effect} | {seeds} | {' | '.join(numbers)} |")


def _read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:] or list(WORLDS))
    table(Path(sys.argv[1]))
