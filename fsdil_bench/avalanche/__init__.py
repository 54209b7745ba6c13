"""Avalanche both ways: scenarios as Avalanche benchmarks and benchmarks as scenarios, strategies as
methods.

It imports `runs` and what that may import. Avalanche itself is an extra, imported when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bridge import benchmark, to_avalanche
    from .incoming import stream_from_avalanche
    from .methods import AvalancheConfig, avalanche_method

_LAZY = {
    "AvalancheConfig": "methods",
    "avalanche_method": "methods",
    "benchmark": "bridge",
    "stream_from_avalanche": "incoming",
    "to_avalanche": "bridge",
}

__all__ = [
    "AvalancheConfig",
    "avalanche_method",
    "benchmark",
    "stream_from_avalanche",
    "to_avalanche",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
