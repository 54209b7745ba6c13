"""The plugin: what fsdil-bench reads to list the scenario. Nothing here draws."""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl

DOMAINS = ("ink", "chalk", "neon", "fog")


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `stripes`."""
    return [
        ScenarioInfo(
            "stripes",
            "six patterns of stripes in four styles, made by code",
            "fsdil_stripes.data:build",
            domains=DOMAINS,
            classes=6,
            options="fsdil_stripes.data:Options",
        )
    ]
