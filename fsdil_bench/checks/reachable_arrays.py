"""All numbers that can be reached from a method in memory, and the way to each."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from fsdil_bench.plugins.method import Method
from fsdil_bench.runs.views import Batch, TrainBatch

from .process_state import own_classes, own_modules

_PLAIN = (str, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.Generator)
_MOST = 200_000  # objects looked at: enough for any method, and an end to it
_FEWEST = 8  # numbers in a plain list that is worth a look


def reachable(method: Method) -> Iterator[tuple[str, torch.Tensor]]:
    """Arrays held by the method's attributes, its classes and its modules, each once."""
    modules = own_modules(type(method))
    waiting: deque[tuple[str, Any]] = deque([("self", method)])
    for kind in own_classes(type(method)):
        waiting += [(f"class attribute {kind.__name__}.{k}", v) for k, v in vars(kind).items()]
    for name, module in modules.items():
        waiting += [(f"variable {k} of module {name}", v) for k, v in vars(module).items()]
    seen: dict[int, Any] = {}  # with the objects, so that no id is used twice
    while waiting and len(seen) < _MOST:
        where, thing = waiting.popleft()
        if id(thing) in seen or _is_foreign(thing, modules):
            continue
        seen[id(thing)] = thing
        array = _as_tensor(thing)
        if array is not None:
            yield where, array
        if not isinstance(thing, np.ndarray | bytes | bytearray):
            waiting += _children(where, thing)


def _children(where: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((f"{where}[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from ((f"{where}[{i}]", value) for i, value in enumerate(thing))
    elif isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=False)
        for name, cell in cells:
            yield from ((f"{where}, which closes over {name},", v) for v in gc.get_referents(cell))
        yield f"a default of {where}", thing.__defaults__
        yield f"a default of {where}", thing.__kwdefaults__
        yield f"{where}", vars(thing)
    elif isinstance(thing, MethodType):
        yield from ((where, thing.__func__), (where, thing.__self__))
    elif torch.is_tensor(thing):
        yield from ((f"{where}.{name}", value) for name, value in vars(thing).items())
    elif hasattr(thing, "__dict__"):
        yield from ((f"{where}.{name}", value) for name, value in vars(thing).items())
        if not isinstance(thing, type | Method | torch.nn.Module):
            yield from ((where, value) for value in gc.get_referents(thing))
    else:
        yield from ((where, value) for value in gc.get_referents(thing))


def _is_foreign(thing: Any, modules: Mapping[str, ModuleType]) -> bool:
    """What belongs to the harness or to libraries, and leads to the rest of the process."""
    if isinstance(thing, (*_PLAIN, ModuleType)):
        return True
    if isinstance(thing, type | FunctionType):
        return getattr(thing, "__module__", "") not in modules
    if isinstance(thing, Batch | TrainBatch | Method):
        return False
    return type(thing).__module__.partition(".")[0] == "fsdil_bench"


def _as_tensor(thing: Any) -> torch.Tensor | None:
    """Numbers as a tensor: arrays, raw bytes, long lists of numbers."""
    if torch.is_tensor(thing):
        return thing.detach()
    if isinstance(thing, bytes | bytearray):
        thing = np.frombuffer(thing, np.float32 if len(thing) % 4 == 0 else np.uint8)
    elif isinstance(thing, list | tuple) and len(thing) >= _FEWEST:
        numbers = all(isinstance(value, int | float) for value in thing)
        thing = np.array(thing, np.float64) if numbers else None
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "fiu":
        return torch.from_numpy(np.array(thing, np.float32))
    return None
