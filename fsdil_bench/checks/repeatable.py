"""Checks that the outcome follows from seed, data and state, and from nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from fsdil_bench.plugins.method import Method, State

from .after_domain import AfterDomain, as_array
from .finding import CheckError
from .small_world import SmallWorld, mixture

_DRAW = "Draw every random number from context.generator(purpose, ...), which follows the seed."


def determinism(world: SmallWorld) -> str:
    """The same seed twice leads to the same states and the same predictions."""
    difference = _first_difference(world.watched.outcomes, world.outcomes())
    if difference:
        raise CheckError(f"two runs with one seed differ: {difference}", _DRAW)
    return "two runs are equal to the last bit"


def seeds(world: SmallWorld) -> str:
    """Randomness follows the run's seed, whatever the global generators were left in."""
    first = world.watched.outcomes
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002 - the global one is what is disturbed here
    torch.manual_seed(7)
    difference = _first_difference(first, world.outcomes())
    if difference:
        raise CheckError(
            f"the seed is the same, the random state before the run is different: {difference}",
            _DRAW,
        )
    if _first_difference(first, world.outcomes(seed=1)):
        return "another seed changes the outcome, another random state before the run does not"
    return "no randomness of its own: another seed changes nothing"


def save_load(world: SmallWorld) -> str:
    """A fresh object with the saved state predicts the same, and continues to learn the same."""
    run = world.watched
    for t, outcome in enumerate(run.outcomes):
        fresh = world.build()
        _load(world, fresh, outcome.state)
        _same_after("loading the state into a fresh object", outcome, world.outcome(fresh, t), t)
        if t + 1 < len(run.outcomes):
            world.learn(fresh, t + 1)
            learned = world.outcome(fresh, t + 1)
            _same_after("resuming from a saved state", run.outcomes[t + 1], learned, t + 1)
    _load(world, run.method, run.outcomes[-1].state)
    again = world.outcome(run.method, len(run.outcomes) - 1)
    _same_after("loading its own state", run.outcomes[-1], again, len(run.outcomes) - 1)
    return "the same predictions, and the same state after one more domain"


def batch_size(world: SmallWorld) -> str:
    """A prediction does not depend on how many other images are in the batch."""
    for size in (1, 7):
        few = torch.arange(len(world.tests(world.size.domains - 1)))[: 24 * size]
        _same_predictions(world, f"in batches of {size}", few.split(size))
    return "the same in batches of 1, of 7 and of all"


def order(world: SmallWorld) -> str:
    """A prediction does not depend on the place in the batch or on the neighbours' domains."""
    count = len(world.tests(world.size.domains - 1))
    _same_predictions(world, "with the images backwards", [torch.arange(count).flip(0)])
    by_domain = mixture(count).argsort()
    _same_predictions(world, "with the images one domain after the other", [by_domain])
    return "the same in a mixture, backwards and one domain after the other"


def _same_predictions(world: SmallWorld, how: str, parts: Sequence[torch.Tensor]) -> None:
    """Compare predictions (and guessed domains) in `parts` of the tests with those for all."""
    last, whole, method = world.size.domains - 1, world.watched.outcomes[-1], world.watched.method
    batch, rows = world.tests(last), torch.cat(list(parts))
    found = [world.predict(method, batch.select(part), last) for part in parts]
    for name, expected, given in (
        ("predictions", whole.classes, [classes for classes, _ in found]),
        ("guessed domains", whole.domains, [domains for _, domains in found]),
    ):
        if expected is None:
            continue
        differs = as_array(expected)[rows] != np.concatenate([as_array(each) for each in given])
        wrong = int(differs.reshape(len(rows), -1).any(1).sum())
        if wrong:
            raise CheckError(
                f"{wrong} of {len(rows)} {name} change {how}",
                "Predict every image by itself: no batch statistics, no positions; keep towers in "
                "eval mode.",
            )


def _same_after(what: str, expected: AfterDomain, found: AfterDomain, t: int) -> None:
    difference = _difference(expected, found)
    if difference:
        raise CheckError(
            f"after {what}, domain {t + 1}: {difference}",
            "Put all that is remembered into state_dict, and rebuild what follows from it in "
            "load_state_dict.",
        )


def _first_difference(expected: list[AfterDomain], found: Iterable[AfterDomain]) -> str:
    for t, (one, other) in enumerate(zip(expected, found, strict=True)):
        difference = _difference(one, other)
        if difference:
            return f"{difference} after domain {t + 1}"
    return ""


def _difference(one: AfterDomain, other: AfterDomain) -> str:
    if one.state.keys() != other.state.keys():
        return f"the state has different names ({', '.join(one.state.keys() ^ other.state.keys())})"
    for name, value in one.state.items():
        if not _equal(as_array(value), as_array(other.state[name])):
            return f"'{name}' of the state is different"
    same = _equal(as_array(one.classes), as_array(other.classes))
    return "" if same else "predictions are different"


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _load(world: SmallWorld, method: Method, state: State) -> None:
    """Through a file, as a run does it between two domains."""
    with TemporaryDirectory() as folder, world.calling("load_state_dict"):
        path = Path(folder) / "state.safetensors"
        save_file({name: value.cpu().contiguous() for name, value in state.items()}, path)
        method.load_state_dict(load_file(path))
