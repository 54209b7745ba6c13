"""my-scenario as a plugin: nothing here imports what draws the pictures."""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl

CLASSES = ("disc", "square", "cross", "ring")
DOMAINS = ("day", "dusk", "night")  # in this order; the first is the base, rich in images


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer the scenario."""
    return [
        ScenarioInfo(
            "my-scenario",
            "one line for `fsdil-bench list scenarios`",
            "my_scenario.data:build",
            domains=DOMAINS,
            classes=len(CLASSES),
        )
    ]
