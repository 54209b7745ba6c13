"""Checks of the interface: what a method takes, gives back and can cope with."""

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

from .finding import CheckError
from .slice import Cut, Slice, as_array


def contract(world: Slice) -> str:
    """Declarations and return values have the types the harness expects."""
    kind, trial = world.job.method_class, world.watched
    if not kind.inputs or not kind.inputs <= {"images", "features"}:
        raise CheckError(
            f"inputs is {set(kind.inputs)}", 'Declare "images", "features" or both of them.'
        )
    if not (dataclasses.is_dataclass(kind.Config) and _is_frozen(kind.Config)):
        raise CheckError("Config is not a frozen dataclass", "Decorate it @dataclass(frozen=True).")
    if any(value is not None for value in trial.returned):
        raise CheckError(
            f"learn returned {type(trial.returned[-1]).__name__}",
            "It must return nothing; what is learned belongs to the method's state.",
        )
    with world.calling("trained_parameters"):
        trained = trial.method.trained_parameters()
    if not isinstance(trained, int) or trained < 0:
        raise CheckError(f"trained_parameters gave {trained!r}", "It must give a whole number.")
    with world.calling("diagnostics, which must be a dict of JSON types,"):
        json.dumps(dict(trial.method.diagnostics()))
    _check_embeddings(world)
    names = len(trial.stages[-1].state)
    return f"state of {names} tensors, {trained:,} trained parameters, {len(world_options(world))} options"


def ids(world: Slice) -> str:
    """Predictions are class ids: whole numbers, one per image, within range."""
    for t, stage in enumerate(world.watched.stages):
        images = len(world.tests(t))
        check_ids("predict", stage.classes, images, world.cut.classes)
        if stage.domains is not None:
            check_ids("predict_domain", stage.domains, images, t + 1)
    return f"whole numbers from 0 to {world.cut.classes - 1}, one per image"


def cpu(world: Slice) -> str:
    """It runs on the CPU, and its state is where the run computes."""
    elsewhere = [
        f"{name} on {value.device}"
        for name, value in world.watched.stages[-1].state.items()
        if value.device.type != "cpu"
    ]
    if elsewhere:
        raise CheckError(
            f"parts of the state are elsewhere: {', '.join(elsewhere)}",
            "Put every tensor on context.device.",
        )
    return "everything is on the CPU"


def one_shot(world: Slice) -> str:
    """It copes with a single image per class."""
    return _survives(world, replace(world.cut, shots=1))


def two_classes(world: Slice) -> str:
    """It copes with two classes."""
    return _survives(world, replace(world.cut, classes=2))


def check_ids(call: str, values: Any, images: int, limit: int) -> None:
    """Refuse what a run would refuse."""
    try:
        plugin_calls.check_ids(call, plugin_calls.integer_ids(call, values), images, limit)
    except PluginError as error:
        raise CheckError(error.message, error.remedy) from error


def world_options(world: Slice) -> list[str]:
    """The names of the method's options."""
    return [field.name for field in dataclasses.fields(world.job.method_class.Config)]


def _is_frozen(config: Any) -> bool:
    return bool(config.__dataclass_params__.frozen)


def _survives(world: Slice, cut: Cut) -> str:
    """The base domain and a few-shot one; a third would be like the second."""
    count = 0
    for count, stage in enumerate(islice(world.stages(cut), 2), 1):
        check_ids("predict", stage.classes, len(world.tests(count - 1, cut)), cut.classes)
    return f"went through {count} domains"


def _check_embeddings(world: Slice) -> None:
    trial, last = world.watched, world.cut.domains - 1
    batch = world.tests(last)
    with world.calling("embed"), torch.no_grad():
        embeddings = trial.method.embed(batch)
    if embeddings is not None and (embeddings.ndim != 2 or len(embeddings) != len(batch)):
        raise CheckError(
            f"embed gave shape {tuple(embeddings.shape)} for {len(batch)} images",
            "Return one embedding per image, (n, d), or None.",
        )
    if isinstance(trial.method, RouterMethod):
        with world.calling("predict"), torch.no_grad():
            whole = trial.method.predict(batch)
        if not (as_array(whole) == as_array(trial.stages[-1].classes)).all():
            raise CheckError(
                "predict differs from predict_in_domain under the domains of predict_domain",
                "Leave `predict` to RouterMethod.",
            )
