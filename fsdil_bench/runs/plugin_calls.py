"""Calls into the code of a method: errors are reported under its name, results are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.plugins.method import Method, State

T = TypeVar("T")


def call_plugin(name: str, what: str, function: Callable[[], T]) -> T:
    """Call method `name`; whatever it raises is reported under its name."""
    try:
        return function()
    except FsdilError as error:
        raise type(error)(f"method '{name}': {error.message}", error.remedy) from error
    except torch.cuda.OutOfMemoryError as error:
        raise PluginError(
            f"method '{name}' ran out of GPU memory in {what}",
            "Use --checkpointing on, lower its batch size with --set, or use --device cpu.",
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin that calls sys.exit must not end the command in peace
        lacking = "MPS" in str(error)  # torch names it where a type or an operation is missing
        raise PluginError(
            f"method '{name}' raised {type(error).__name__} in {what}: {error}",
            "MPS lacks something that this method needs: use --device cpu."
            if lacking
            else "The traceback is in the run's log.txt; --debug shows it here.",
        ) from error


def checked_state(name: str, method: Method) -> State:
    """The state of method `name`, if it is a valid one."""
    state = call_plugin(name, "state_dict", method.state_dict)
    if not isinstance(state, dict) or not all(
        isinstance(k, str) and torch.is_tensor(v) for k, v in state.items()
    ):
        raise PluginError(
            f"method '{name}': state_dict must be a flat dict of named tensors",
            "Store a number as torch.tensor(number).",
        )
    return state


@torch.no_grad()
def predicted_ids(name: str, method: Method, call: str, *given: Any) -> np.ndarray:
    """What the function `call` of method `name` returns for a batch, if these are integers."""
    return call_plugin(name, call, lambda: integer_ids(call, getattr(method, call)(*given)))


def integer_ids(call: str, values: Any) -> np.ndarray:
    """The values that `call` returned, if they are integers."""
    try:
        array = values.detach().cpu().numpy() if torch.is_tensor(values) else np.asarray(values)
    except Exception as error:
        raise PluginError(f"{call} returned {type(values)}") from error
    if array.dtype.kind not in "iu":
        raise PluginError(
            f"{call} returned {array.dtype} of shape {array.shape}, not integer ids",
            "Return integers, for instance logits.argmax(1).",
        )
    return array.astype(np.int64)


def check_ids(call: str, ids: np.ndarray, images: int, limit: int) -> None:
    """Refuse anything but one id below `limit` for each image."""
    if ids.shape != (images,):
        raise PluginError(
            f"{call} returned shape {ids.shape} for {images} images",
            f"Return one id per image: shape ({images},).",
        )
    if images and not 0 <= ids.min() <= ids.max() < limit:
        raise PluginError(
            f"{call} returned ids from {ids.min()} to {ids.max()}",
            f"Ids must be from 0 to {limit - 1}.",
        )
