"""The `forged` scenario: real or fake? Five makers of pictures, all drawn by code.

It stands in for CDDB-Hard where there is no data set: numbers on it say nothing about CDDB-Hard.
"""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `forged`."""
    return [
        ScenarioInfo(
            "forged",
            "real and fake pictures from five makers, drawn by code; needs no download",
            "fsdil_scenarios.forged.build:build",
            domains=("weaver", "stamper", "splicer", "polisher", "sharpener"),
            classes=2,
            variants={
                "balanced": "as many real as fake training pictures",
                "validation": "the base and two makers of its own, to choose options on",
            },
        )
    ]
