"""The check that a method runs on a GPU, on a machine that need not have one."""

from __future__ import annotations

from itertools import islice

import numpy as np

from .after_domain import AfterDomain, as_array
from .device_tensor import NotPretendedError, RefusedError
from .finding import CheckError
from .pretended_device import pretended_device
from .small_world import SmallWorld

#: The part of the predictions that may differ from those on the CPU: rounding differs.
_ROUNDING = 0.1


def device(world: SmallWorld) -> str:
    """It obeys the rules of a CUDA device, also when resumed, and predicts as on the CPU."""
    expected = world.watched.outcomes
    try:
        with pretended_device() as place:
            there = world.on(place, "bf16")
            found = list(islice(there.outcomes(), 2))  # a third domain would be like the second
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
    return f"ran through {len(found)} domains on a pretended CUDA device"


def _resumed(there: SmallWorld, first: AfterDomain) -> AfterDomain | None:
    """The second domain, by a fresh object that resumes from the saved state after the first."""
    if there.size.domains < 2:
        return None
    method = there.build()
    saved = {name: value.cpu() for name, value in first.state.items()}
    with there.calling("load_state_dict"):
        device = there.job.backbone.device
        method.load_state_dict({name: value.to(device) for name, value in saved.items()})
    there.learn(method, 1)
    return there.outcome(method, 1)


def _compare(when: str, expected: AfterDomain, found: AfterDomain) -> None:
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
