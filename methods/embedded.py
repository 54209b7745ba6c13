"""What all methods have in common on the embedded worlds: how long they may train.

Every method that trains has the same budget on a world: passes over the base domain, and steps in
each later one, with at most 32 images in a step. On `drawn` and `shelf`, which have many classes,
it keeps a run at some 40 seconds of one core, so that the boards of all methods can be made again
on a laptop. What a method may choose for itself, such as its learning rate, was chosen by
`fsdil-bench tune` with the same number of trials, and is in `chosen.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "drawn": {"base_epochs": 1, "batch_size": 32, "steps": 25},
    "shelf": {"base_epochs": 2, "batch_size": 32, "steps": 25},
    "forged": {"base_epochs": 2, "batch_size": 32, "steps": 50},
}
#: All that a budget limits, for methods that have an option for each.
LIMITS = ("base_epochs", "batch_size", "steps")


def on_embedded_worlds(*limits: str, **values: Any) -> dict[str, dict[str, Any]]:
    """Presets of a method: these parts of each world's budget, and values for all worlds."""
    return {
        world: {name: budget[name] for name in limits} | values for world, budget in BUDGETS.items()
    }
