"""Checks of what a method remembers: how much, and whether it is images.

A method is searched in two places: its state, which is what a run stores, and everything that can
be reached from it in memory (attributes, class attributes, module variables, closures). Stored
images are recognised if they are scaled, shifted or rounded, also in half precision or as bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from fsdil_bench.runs.cost import state_bytes

from .finding import CheckError
from .image_search import ImageSearch
from .reachable_arrays import reachable
from .small_stream import WorldSize
from .small_world import SmallWorld

_SLACK = 256  # bytes of names and counters that may come and go
_KEEPS = "it declares that it keeps old images (exemplar_free=False)"


def growth(world: SmallWorld) -> str:
    """The state grows by no more than a constant per domain, and never with images."""
    sizes = [state_bytes(outcome.state) for outcome in world.watched.outcomes]
    steps = [after - before for before, after in pairwise(sizes)]
    remedy = "Keep statistics of constant size per domain, not samples and not histories."
    for before, after in pairwise(steps):
        if after > 1.2 * max(before, 0) + _SLACK:
            raise CheckError(
                f"the state grows faster than the number of domains: {_listed(sizes)} bytes", remedy
            )
    info, size = world.job.info, world.size
    if info.exemplar_free and not info.keeps_features:
        for where, more, few, many in (
            ("the base domain", size.base, size, replace(size, base=2 * size.base)),
            ("a later domain", 1, replace(size, shots=max(1, size.shots - 1)), size),
        ):
            t = 0 if few.base < many.base else 1
            grown = _bytes_after(world, t, many) - _bytes_after(world, t, few)
            if grown >= more * size.classes:  # a byte per image
                raise CheckError(
                    f"{more * size.classes} more images in {where} make the state "
                    f"{grown:,} bytes larger",
                    remedy,
                )
    held = _held_while_predicting(world)
    if held[0] < held[1] < held[2]:
        raise CheckError(
            f"memory grows with every prediction: {_listed(held)} bytes",
            "Keep nothing while predicting.",
        )
    ending = "" if info.keeps_features else ", however many images"
    return f"{_listed(sizes)} bytes after each domain{ending}"


def exemplars(world: SmallWorld) -> str:
    """The state holds no image, view or feature of a training image.

    Features are allowed where they are declared (keeps_features).
    """
    info = world.job.info
    if not info.exemplar_free:
        return _KEEPS
    run = world.watched
    search = ImageSearch(run.seen.images, [] if info.keeps_features else run.seen.features)
    for t, outcome in enumerate(run.outcomes):
        for name, value in outcome.state.items():
            found = search.found_in(value)
            if found:
                raise CheckError(
                    f"after domain {t + 1}, '{name}' of the state holds {found}",
                    "Keep statistics (means, covariances, weights), or declare in its MethodInfo "
                    "exemplar_free=False, or keeps_features=True; boards then label it so.",
                )
    what = "images and views" if info.keeps_features else "images, views and features"
    return f"none of {len(search)} {what} that it was given is in the state"


def leaks(world: SmallWorld) -> str:
    """No image outlives its domain: on self, in a class, a module or a closure."""
    info = world.job.info
    if not info.exemplar_free:
        return _KEEPS
    run = world.watched
    gc.collect()
    remedy = "Drop images and features when learn returns; they may not be used again."
    tests = world.tests(world.size.domains - 1)
    features = [] if info.keeps_features else run.seen.features
    search = ImageSearch(
        [*run.seen.images, *([tests.images] if "images" in run.method.inputs else [])],
        [*features, *([tests.features] if "features" in run.method.inputs else [])],
    )
    for where, array in reachable(run.method):
        found = search.found_in(array)
        if found:
            raise CheckError(f"{where} holds {found} after its domain is over", remedy)
    alive = run.seen.alive()
    if alive:
        listed = ", ".join(f"{count} × {what}" for what, count in alive.items())
        raise CheckError(f"tensors that it was given are still in memory: {listed}", remedy)
    return "everything that it was given is gone from memory"


def _bytes_after(world: SmallWorld, t: int, size: WorldSize) -> int:
    """The bytes of the state after domain t; 0 if there is no such domain."""
    if t >= size.domains:
        return 0
    method = world.build(size)
    for each in range(t + 1):
        world.learn(method, each, size=size)
    return state_bytes(world.state_of(method))


def _held_while_predicting(world: SmallWorld) -> list[int]:
    """Bytes reachable from the method after one, two and three more predictions."""
    method, last = world.watched.method, world.size.domains - 1
    held = []
    for _ in range(3):
        world.predict(method, world.tests(last), last)
        held.append(sum(array.nbytes for _, array in reachable(method)))
    return held


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)
