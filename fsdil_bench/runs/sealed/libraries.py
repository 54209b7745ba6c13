"""Libraries that a process of a sealed run has imported before anything in it is watched.

To import Avalanche is to list fonts, to look whether there is IPv6 and to import Weights & Biases,
all of which would be noted as if the method had done it. So the fork server imports it for methods
that are made with it, once for all processes of a run. Only the libraries named here can be had so,
and only from the distributions that publish them, so that nobody's folder of such a name is taken
for one. Whatever else a plugin needs is imported where it is watched.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

#: Each with its distribution and the modules that are imported.
_LIBRARIES = {
    "open_clip": ("open_clip_torch", ("open_clip",)),
    "avalanche": (
        "avalanche-lib",
        ("avalanche.benchmarks", "avalanche.training.plugins", "avalanche.training.supervised"),
    ),
}


def import_libraries(names: Iterable[str]) -> None:
    """Import what is known of these names; what is not installed is the method's to report."""
    with empty_module("wandb"):
        for name in _LIBRARIES.keys() & set(names):
            distribution, modules = _LIBRARIES[name]
            if _comes_from(name, distribution):
                for module in modules:
                    with suppress(ImportError):
                        importlib.import_module(module)


def _comes_from(package: str, distribution: str) -> bool:
    """Whether Python would find the package where that distribution is installed."""
    try:
        place = metadata.distribution(distribution).locate_file(package)
        spec = find_spec(package)
    except (metadata.PackageNotFoundError, ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).parent.resolve() == Path(str(place)).resolve()


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
