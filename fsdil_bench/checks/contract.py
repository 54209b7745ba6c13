"""Checks of the interface: what a method takes, what it returns and what it can handle."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from fsdil_bench.errors import PluginError
from fsdil_bench.plugins.method import RouterMethod
from fsdil_bench.runs import plugin_calls

from .after_domain import as_array
from .finding import CheckError
from .small_stream import WorldSize
from .small_world import SmallWorld


def contract(world: SmallWorld) -> str:
    """Declarations and return values have the types the harness expects."""
    kind, run = world.job.method_class, world.watched
    if not kind.inputs or not kind.inputs <= {"images", "features"}:
        raise CheckError(
            f"inputs is {set(kind.inputs)}", 'Declare "images", "features" or both of them.'
        )
    if not (dataclasses.is_dataclass(kind.Config) and _is_frozen(kind.Config)):
        raise CheckError("Config is not a frozen dataclass", "Decorate it @dataclass(frozen=True).")
    if any(value is not None for value in run.returned):
        raise CheckError(
            f"learn returned {type(run.returned[-1]).__name__}",
            "It must return nothing; what is learned belongs to the method's state.",
        )
    with world.calling("trained_parameters"):
        trained = run.method.trained_parameters()
    if not isinstance(trained, int) or trained < 0:
        raise CheckError(
            f"trained_parameters returned {trained!r}", "It must return a whole number."
        )
    with world.calling("diagnostics, which must be a dict of JSON types,"):
        json.dumps(dict(run.method.diagnostics()))
    _check_embeddings(world)
    tensors, options = len(run.outcomes[-1].state), len(dataclasses.fields(kind.Config))
    return f"state of {tensors} tensors, {trained:,} trained parameters, {options} options"


def ids(world: SmallWorld) -> str:
    """Predictions are class ids: whole numbers, one per image, within range."""
    for t, outcome in enumerate(world.watched.outcomes):
        images = len(world.tests(t))
        check_ids("predict", outcome.classes, images, world.size.classes)
        if outcome.domains is not None:
            check_ids("predict_domain", outcome.domains, images, t + 1)
    return f"whole numbers from 0 to {world.size.classes - 1}, one per image"


def cpu(world: SmallWorld) -> str:
    """It runs on the CPU, and its state is where the run computes."""
    elsewhere = [
        f"{name} on {value.device}"
        for name, value in world.watched.outcomes[-1].state.items()
        if value.device.type != "cpu"
    ]
    if elsewhere:
        raise CheckError(
            f"parts of the state are elsewhere: {', '.join(elsewhere)}",
            "Put every tensor on context.device.",
        )
    return "everything is on the CPU"


def one_shot(world: SmallWorld) -> str:
    """It can handle a single image per class."""
    return _survives(world, replace(world.size, shots=1))


def two_classes(world: SmallWorld) -> str:
    """It can handle two classes."""
    return _survives(world, replace(world.size, classes=2))


def check_ids(call: str, values: Any, images: int, limit: int) -> None:
    """Refuse what a run would refuse."""
    try:
        plugin_calls.check_ids(call, plugin_calls.integer_ids(call, values), images, limit)
    except PluginError as error:
        raise CheckError(error.message, error.remedy) from error


def _is_frozen(config: Any) -> bool:
    return bool(config.__dataclass_params__.frozen)


def _survives(world: SmallWorld, size: WorldSize) -> str:
    """The base domain and a few-shot one; a third would be like the second."""
    count = 0
    for count, outcome in enumerate(islice(world.outcomes(size), 2), 1):
        check_ids("predict", outcome.classes, len(world.tests(count - 1, size)), size.classes)
    return f"ran through {count} domains"


def _check_embeddings(world: SmallWorld) -> None:
    run, last = world.watched, world.size.domains - 1
    batch = world.tests(last)
    with world.calling("embed"), torch.no_grad():
        embeddings = run.method.embed(batch)
    if embeddings is not None and (embeddings.ndim != 2 or len(embeddings) != len(batch)):
        raise CheckError(
            f"embed returned shape {tuple(embeddings.shape)} for {len(batch)} images",
            "Return one embedding per image, (n, d), or None.",
        )
    if isinstance(run.method, RouterMethod):
        with world.calling("predict"), torch.no_grad():
            whole = run.method.predict(batch)
        if not (as_array(whole) == as_array(run.outcomes[-1].classes)).all():
            raise CheckError(
                "predict differs from predict_in_domain under the domains of predict_domain",
                "Leave `predict` to RouterMethod.",
            )
