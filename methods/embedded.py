"""What all methods have in common on the embedded worlds: how long they may train.

Every method that trains has the same budget there: two passes over the base domain, and 50 steps
in each later one, with at most 32 images in a step. What it may choose for itself, such as its
learning rate, was chosen by `fsdil-bench tune` with the same number of trials, and is in
`chosen.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORLDS = ("drawn", "shelf", "forged")
BUDGET: Mapping[str, Any] = {"base_epochs": 2, "batch_size": 32, "steps": 50}


def on_embedded_worlds(**values: Any) -> dict[str, dict[str, Any]]:
    """Presets of a method with these values on each of the worlds."""
    return {world: dict(values) for world in WORLDS}
