"""The `drawn` scenario: everyday objects drawn by code in six styles, nothing downloaded.

It stands in for DomainNet where there is no data set: numbers on it say nothing about DomainNet.
"""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `drawn`."""
    return [
        ScenarioInfo(
            "drawn",
            "24 everyday objects drawn by code in six styles; needs no download",
            "fsdil_scenarios.drawn.build:build",
            domains=("real", "painting", "clipart", "sketch", "quickdraw", "infograph"),
            classes=24,
            variants={"validation": "the base and two styles of its own, to choose options on"},
        )
    ]
