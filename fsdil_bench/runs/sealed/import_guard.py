"""In a process of a sealed run, modules that offer scenarios cannot be imported.

With the code that builds a scenario a method could make its test images itself. What a backbone
needs is allowed: `tiny-clip` comes in the package of the built-in scenarios.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

_SCENARIOS = "fsdil_scenarios"
_BACKBONE = tuple(
    f"{_SCENARIOS}.tiny_clip{name}" for name in ("", ".backbone", ".model", ".tokenizer")
)


class ImportGuard(MetaPathFinder):
    """Refuses modules: those of the built-in scenarios, and all below the names in `packages`."""

    def __init__(self, packages: Sequence[str], note: Callable[[str, str], None]) -> None:
        self._packages = (_SCENARIOS, *packages)
        self._note = note

    def install(self) -> None:
        """Stand before all others that find modules, and forget what was imported already."""
        for name in [name for name in sys.modules if self._refuses(name)]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Nothing for what is allowed; ImportError for the rest."""
        del path, target
        if self._refuses(name):
            self._refuse(name)

    def _refuses(self, name: str) -> bool:
        inside = any(f"{name}.".startswith(f"{package}.") for package in self._packages)
        return inside and name != _SCENARIOS and name not in _BACKBONE

    def _refuse(self, name: str) -> NoReturn:
        self._note("import", name)
        raise ImportError(
            f"{name} belongs to a scenario, which cannot be imported inside a sealed run"
        )
