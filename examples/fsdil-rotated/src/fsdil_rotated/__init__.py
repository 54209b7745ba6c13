"""The plugin: what fsdil-bench reads to list the scenario. Nothing here imports Avalanche."""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `rotated`."""
    return [
        ScenarioInfo(
            "rotated",
            "four shapes that every domain rotates further, by way of Avalanche",
            "fsdil_rotated.data:build",
            domains=("upright", "30 degrees", "60 degrees"),
            classes=4,
        )
    ]
