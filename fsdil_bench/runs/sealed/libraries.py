"""Libraries that a process of a sealed run has imported before anything in it is watched.

To import Avalanche is to list fonts, to look whether there is IPv6 and to import Weights & Biases,
all of which would be noted as if the method had done it. So the fork server imports it for methods
that are made with it, once for all processes of a run. Only the libraries named here can be had so:
whatever else a plugin needs is imported where it is watched.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType

_MODULES = {
    "open_clip": ("open_clip",),
    "avalanche": (
        "avalanche.benchmarks", "avalanche.training.plugins", "avalanche.training.supervised",
    ),
}  # fmt: skip


def import_libraries(names: Iterable[str]) -> None:
    """Import what is known of these names; what is not installed is the method's to report."""
    with empty_module("wandb"):
        for name in names:
            for module in _MODULES.get(name, ()):
                with suppress(ImportError):
                    importlib.import_module(module)


@contextmanager
def empty_module(name: str) -> Iterator[None]:
    """An empty module in place of one that imports in here would bring along for nothing.

    Weights & Biases takes most of a second and makes folders for temporary files, which a process
    that is killed leaves behind.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]
