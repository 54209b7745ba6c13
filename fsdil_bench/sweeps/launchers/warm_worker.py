"""Workers that start warm: what the fork server of a local sweep imports, what its copies do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any


def preload() -> None:
    """Do what takes long and is the same for all runs: imports, and reading the code of plugins."""
    from fsdil_bench.plugins.code_hash import code_version
    from fsdil_bench.plugins.registry import load_registry
    from fsdil_bench.runs import loop  # noqa: F401
    from fsdil_bench.runs.sealed.libraries import import_libraries
    from fsdil_bench.sweeps import worker  # noqa: F401

    import_libraries(["open_clip"])
    registry = load_registry(third_party=())  # a sealed run may be among the tasks
    factories = [info.factory for info in registry.methods.values()]
    factories += [info.factory for info in registry.scenarios.values()]
    for factory in factories:
        with suppress(Exception):  # a broken plugin matters only to the run that needs it
            code_version(factory)


def main(order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Carry out the task in the request file of the order."""
    del descriptors
    from fsdil_bench.sweeps import worker

    os.environ.update(order["environment"])
    return worker.main([order["request"]])
