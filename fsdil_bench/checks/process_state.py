"""What a method must leave as it was: the process around it, its own class and its modules.

Drawing from the global random generators does no harm, because the harness seeds them before every
call; seeding them does: what is drawn afterwards no longer follows the run's seed.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch

#: Settings of the process: how to read each, and how to write it back.
_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "the working directory": (os.getcwd, os.chdir),
    "environment variables": (lambda: dict(os.environ), lambda old: _put_back(old)),
    "sys.path": (lambda: list(sys.path), lambda old: sys.path.__setitem__(slice(None), old)),
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's default device": (torch.get_default_device, lambda old: _default_device(old)),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's inference mode": (torch.is_inference_mode_enabled, lambda old: None),
    "torch's deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "torch's matmul precision": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "torch.backends.cudnn.benchmark": (
        lambda: torch.backends.cudnn.benchmark,
        lambda old: setattr(torch.backends.cudnn, "benchmark", old),
    ),
    "torch.backends.cudnn.deterministic": (
        lambda: torch.backends.cudnn.deterministic,
        lambda old: setattr(torch.backends.cudnn, "deterministic", old),
    ),
    "NumPy's error handling": (np.geterr, lambda old: np.seterr(**old)),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
}

#: Functions that set the seeds of global generators, and whose these are.
_SEEDERS: tuple[tuple[Any, str, str], ...] = (
    (random, "seed", "Python's"),
    (np.random, "seed", "NumPy's"),
    (torch, "manual_seed", "torch's"),
    (torch.random, "manual_seed", "torch's"),
)


@contextmanager
def seeding() -> Iterator[list[str]]:
    """List which global generators are seeded by others than the harness."""
    found: list[str] = []

    def watched(seed: Callable[..., Any], whose: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if not sys._getframe(1).f_globals.get("__name__", "").startswith("fsdil_bench."):
                found.append(f"the seed of {whose} global random generator")
            return seed(*arguments, **options)

        return call

    with ExitStack() as stack:
        for module, name, whose in _SEEDERS:
            stack.enter_context(
                mock.patch.object(module, name, watched(getattr(module, name), whose))
            )
        yield found


@dataclass(frozen=True)
class ProcessState:
    """A snapshot of settings, class attributes and module variables."""

    method_class: type
    settings: Mapping[str, Any]
    attributes: Mapping[str, Any]

    @classmethod
    def now(cls, method_class: type) -> ProcessState:
        """Take a snapshot."""
        settings = {name: read() for name, (read, _) in _SETTINGS.items()}
        return cls(method_class, settings, _attributes(method_class))

    def differences(self, later: ProcessState) -> list[str]:
        """What is different in a later snapshot."""
        changed = [name for name, old in self.settings.items() if later.settings[name] != old]
        names = [n for n in later.attributes if self.attributes.get(n) != later.attributes[n]]
        return changed + [f"{name}, which all runs share," for name in names]

    def restore(self) -> None:
        """Put the settings back, so that what a method changed does not spoil the next check."""
        for name, (read, write) in _SETTINGS.items():
            if read() != self.settings[name]:
                write(self.settings[name])


def own_modules(method_class: type) -> dict[str, ModuleType]:
    """The modules a method is written in, with their neighbours in the same package."""
    own = [kind.__module__ for kind in own_classes(method_class)]
    tops = {name.partition(".")[0] for name in own}
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in tops and isinstance(module, ModuleType)
    }


def own_classes(method_class: type) -> list[type]:
    """The method's class and its bases, without those of the harness and of libraries."""
    foreign = ("fsdil_bench", "abc", "builtins", "torch", "typing")
    kinds = method_class.__mro__
    return [kind for kind in kinds if kind.__module__.partition(".")[0] not in foreign]


def _attributes(method_class: type) -> dict[str, Any]:
    """Fingerprints of all class attributes and module variables."""
    places: dict[str, Mapping[str, Any]] = {}
    places |= {f"class {kind.__name__}": vars(kind) for kind in own_classes(method_class)}
    names = {kind.__module__ for kind in own_classes(method_class)}
    places |= {f"module {name}": vars(sys.modules[name]) for name in names if name in sys.modules}
    return {
        f"'{name}' of {where}": _fingerprint(value)
        for where, known in places.items()
        for name, value in known.items()
        if not name.startswith("__") and name != "_abc_impl" and not isinstance(value, ModuleType)
    }


def _fingerprint(value: Any) -> Any:
    """Something that changes when the value does."""
    if torch.is_tensor(value):
        return id(value), value._version
    if isinstance(value, list | tuple | set | dict):
        return id(value), len(value)
    return id(value)


def _put_back(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _default_device(device: torch.device) -> None:
    # Setting a device by name costs time at every call; None is torch's own start.
    torch.set_default_device(None if device.type == "cpu" else device)
