"""Checks that a method uses only what it is given, and leaves everything else alone."""

from __future__ import annotations

import numpy as np
import torch

from fsdil_bench.plugins.harness_guard import changed, snapshot

from .after_domain import AfterDomain, as_array
from .finding import CheckError
from .small_world import SmallWorld

_MOST_NAMED = 5


def quiet_prediction(world: SmallWorld) -> str:
    """Predicting changes neither the state nor later predictions."""
    method, last = world.watched.method, world.size.domains - 1
    first, second = (world.outcome(method, last) for _ in range(2))
    before = world.watched.outcomes[-1]
    # `outcome` predicts before it copies the state: what the first changed shows in the second.
    for one, other in ((before, first), (first, second)):
        changed = _changed(one, other)
        if changed:
            raise CheckError(
                f"predicting the same images again: {changed}",
                "Learn nothing from test images, and count nothing while predicting.",
            )
    return "state and predictions stay as they are"


def kept_data(world: SmallWorld) -> str:
    """The images, labels and class names that the harness keeps are as they were."""
    domains = len(world.watched.outcomes)
    kept, untouched = world.kept_stream(), world.untouched_stream()
    remedy = "Write only into what labels, features(), images() and batches() return: copies."
    if (kept.class_names, kept.synonyms) != (untouched.class_names, untouched.synonyms):
        raise CheckError("the harness's class names were changed", remedy)
    for t, (one, other) in enumerate(zip(kept.domains, untouched.domains, strict=True)):
        for part, mine, theirs in (
            ("training", one.train, other.train),
            ("test", one.test, other.test),
        ):
            if mine.ids != theirs.ids or not np.array_equal(mine.labels, theirs.labels):
                found = f"the harness's {part} images or labels of domain {t + 1} were changed"
                raise CheckError(found, remedy)
    return f"labels, order and names are as they were before {domains} domains"


def side_effects(world: SmallWorld) -> str:
    """The process, the class and its module are left as they were."""
    domains = len(world.watched.outcomes)
    if world.changed:
        listed = "; ".join(f"{who} changed {what}" for what, who in world.changed.items())
        raise CheckError(
            listed.rstrip(","),
            "Undo it before returning, or use a context manager; keep what is learned on self.",
        )
    return f"environment, torch's settings and class attributes are untouched by {domains} domains"


def harness(world: SmallWorld) -> str:
    """The functions of the harness and of built-in plugins are what they were before plugins came.

    What happens when a plugin file is imported counts, too.
    """
    domains = len(world.watched.outcomes)
    if found := changed(snapshot()):
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise CheckError(
            f"a plugin has changed {', '.join(found[:_MOST_NAMED])}{more}",
            "Patch nothing of the harness; a method gets all that it may use through its context.",
        )
    return f"{len(snapshot()):,} functions and constants are as they were before {domains} domains"


def frozen_backbone(world: SmallWorld) -> str:
    """The shared model is left as it was: weights, mode and hooks."""
    domains = len(world.watched.outcomes)
    model, untouched = world.model, world.pristine_model()
    remedy = "Train a copy (backbone.visual_copy()), or adapt it with fsdil_bench.adapters."
    weights = untouched.state_dict()
    for name, value in model.state_dict().items():
        if name not in weights or not torch.equal(weights[name], value):
            raise CheckError(f"weight '{name}' of the backbone was changed", remedy)
    if any(module.training for module in model.modules()):
        raise CheckError("the backbone was left in training mode", "Leave it in eval mode.")
    if any(weight.requires_grad for weight in model.parameters()):
        raise CheckError("weights of the backbone were left to be trained", remedy)
    if _hooks(model) != _hooks(untouched):
        raise CheckError("a hook was left on the backbone", "Remove it before learn returns.")
    return f"all {len(weights)} tensors of the model are as they were before {domains} domains"


def shots(world: SmallWorld) -> str:
    """Only the images of the current domain are read, through the view that `learn` is given."""
    seen = world.watched.seen
    if seen.peeked:
        raise CheckError(
            f"it looked at private parts of the domain: {', '.join(sorted(seen.peeked))}",
            "Use labels, features(), images(), batches() and take().",
        )
    for t, counts in seen.labels.items():
        wanted = world.size.shots if t else world.size.base
        if set(counts.values()) != {wanted} or len(counts) != world.size.classes:
            raise CheckError(
                f"domain {t + 1} has {dict(counts)} images per class, not {wanted}",
                "The view was changed; leave it as it is.",
            )
    if seen.outside:
        raise CheckError(
            f"images were served that the domain does not have: {sorted(seen.outside)}",
            "The view was changed; leave it as it is.",
        )
    read = ", ".join(str(t + 1) for t in sorted(seen.read)) or "none"
    return f"{world.size.shots} images per class in later domains; domains read: {read}"


def _changed(one: AfterDomain, other: AfterDomain) -> str:
    for name in one.state.keys() | other.state.keys():
        pair = one.state.get(name), other.state.get(name)
        if as_array(pair[0]).tobytes() != as_array(pair[1]).tobytes():
            return f"'{name}' of the state changes"
    same = as_array(one.classes).tobytes() == as_array(other.classes).tobytes()
    return "" if same else "predictions change"


def _hooks(model: torch.nn.Module) -> list[int]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return [len(getattr(module, kind)) for module in model.modules() for kind in kinds]
