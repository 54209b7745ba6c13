"""The plugin: what fsdil-bench reads to list the method. Nothing here imports Avalanche."""

from __future__ import annotations

from fsdil_bench import MethodInfo, hookimpl


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer `avalanche-mas`."""
    return [
        MethodInfo(
            "avalanche-mas",
            "memory aware synapses by Avalanche",
            "fsdil_avalanche.method:MASMethod",
            paper="Aljundi et al., 2018",
        )
    ]
