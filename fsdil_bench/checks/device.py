"""The check that a method runs on a GPU, on a machine that need not have one."""

from __future__ import annotations

from itertools import islice

import numpy as np

from .finding import CheckError
from .pretended_device import NotPretendedError, RefusedError, pretended_device
from .slice import Slice, Stage, as_array

#: The part of the predictions that may differ from those on the CPU: sums are rounded elsewhere.
_ROUNDING = 0.1


def device(world: Slice) -> str:
    """It keeps to the rules of a CUDA device, also resumed, and predicts there as on the CPU."""
    expected = world.watched.stages
    try:
        with pretended_device() as place:
            there = world.on(place, "bf16")
            found = list(islice(there.stages(), 2))  # a third domain would be like the second
            resumed = _resumed(there, found[0])
    except CheckError as failure:
        cause = failure.__cause__
        if isinstance(cause, NotPretendedError):
            return f"could not be tried: only a real device computes {cause}"
        remedy = f"{cause.remedy} " if isinstance(cause, RefusedError) else ""
        raise CheckError(f"on a CUDA device, {failure.found}", remedy + failure.remedy) from failure
    for t, (one, other) in enumerate(zip(expected, found, strict=False)):
        _compare(f"after domain {t + 1} on a CUDA device", one, other)
    if resumed is not None:
        _compare("when resumed on a CUDA device", expected[1], resumed)
    return f"went through {len(found)} domains on a pretended CUDA device"


def _resumed(there: Slice, first: Stage) -> Stage | None:
    """The second domain, by a fresh object that goes on from the saved state after the first."""
    if there.cut.domains < 2:
        return None
    method = there.build()
    saved = {name: value.cpu() for name, value in first.state.items()}
    with there.calling("load_state_dict"):
        device = there.job.backbone.device
        method.load_state_dict({name: value.to(device) for name, value in saved.items()})
    there.learn(method, 1)
    return there.stage(method, 1)


def _compare(when: str, expected: Stage, found: Stage) -> None:
    one, other = as_array(expected.classes), as_array(found.classes)
    if one.shape != other.shape or one.dtype.kind not in "iu":
        return  # `ids` says what is wrong
    differs = one != other
    if np.mean(differs) > _ROUNDING:
        raise CheckError(
            f"{int(np.sum(differs))} of {np.size(differs)} predictions change {when}",
            "On the CPU, x.cpu(), x.to(device) and x.numpy() share the memory of x; on a GPU they "
            "are copies. Write into x itself, and compute the same on all devices.",
        )
