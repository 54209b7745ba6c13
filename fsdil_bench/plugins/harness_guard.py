"""Notices when a plugin changes the harness: its functions are hashed before plugins are imported.

A plugin runs in the process that it is imported into, so it could replace a function that decides
results: of the loop, of a metric, of a built-in method. `snapshot` notes all of them, also those of
modules that are imported later, right after their import. `changed` names what is different now.
This finds a patch, not every trick: evidence is a sealed run, whose harness imports no plugin.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

#: Packages and modules whose functions decide results.
WATCHED = (
    "fsdil_bench.adapters", "fsdil_bench.cache", "fsdil_bench.data", "fsdil_bench.models",
    "fsdil_bench.plugins", "fsdil_bench.records", "fsdil_bench.runs", "fsdil_bench.seeds",
    "fsdil_methods", "fsdil_scenarios",
)  # fmt: skip

_known: dict[str, str] = {}
_modules: dict[str, ModuleType] = {}


def snapshot() -> Mapping[str, str]:
    """Hashes of all functions of the harness, by full name, as they were when first noted.

    The mapping grows when further modules of the harness are imported.
    """
    if not any(isinstance(finder, _Notes) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Notes())
    for name, module in list(sys.modules.items()):
        if _watched(name) and not getattr(module.__spec__, "_initializing", False):
            _note(module)
    return MappingProxyType(_known)


def changed(before: Mapping[str, str]) -> list[str]:
    """The full names of functions that are different from those noted in `before`, sorted."""
    now = {full: digest for each in list(_modules.values()) for full, digest in _hashes(each)}
    replaced = {name for name, module in _modules.items() if sys.modules.get(name) is not module}
    return sorted(replaced | {name for name, _ in before.items() ^ now.items()})


class _Notes(MetaPathFinder):
    """Finds nothing itself; has every watched module noted as soon as it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not _watched(name):
            return None
        finders = (each for each in sys.meta_path if not isinstance(each, _Notes))
        spec = next(filter(None, (each.find_spec(name, path, target) for each in finders)), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_note(module: ModuleType) -> None:
                run(module)
                _note(module)

            spec.loader.exec_module = run_and_note  # type: ignore[method-assign]
        return spec


def _watched(module: str) -> bool:
    return any(f"{module}.".startswith(f"{name}.") for name in WATCHED)


def _note(module: ModuleType) -> None:
    if module.__name__ not in _modules:
        _modules[module.__name__] = module
        _known.update(_hashes(module))


def _hashes(module: ModuleType) -> Iterator[tuple[str, str]]:
    return _named(module, module.__name__, module.__name__)


def _named(owner: Any, prefix: str, module: str) -> Iterator[tuple[str, str]]:
    """Names and hashes of what a module or a class defines or has imported."""
    for name, value in list(vars(owner).items()):
        full = f"{prefix}.{name}"
        if isinstance(value, type):
            yield full, str(id(value))
            if value.__module__ == module and value.__qualname__ == full[len(module) + 1 :]:
                yield from _named(value, full, module)
        elif codes := list(_codes(value)):
            yield full, hashlib.sha256(repr(codes).encode()).hexdigest()
        elif isinstance(value, int | float | str | tuple) and name.strip("_").isupper():
            yield full, repr(value)


def _codes(value: Any) -> Iterator[Any]:
    """The code of a function, and of what a property or a decorator wraps."""
    if isinstance(value, FunctionType):
        yield _plain(value.__code__)
        yield from map(repr, value.__defaults__ or ())
    if isinstance(value, property):
        for part in (value.fget, value.fset):
            yield from _codes(part)
    elif isinstance(value, functools.cached_property):
        yield from _codes(value.func)
    elif (inner := getattr(value, "__wrapped__", None)) is not None:
        yield from _codes(inner)


def _plain(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it stands."""
    constants = [_plain(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
