"""Part of the base domain held out: the only data on which a method may choose its constants."""

from __future__ import annotations

import torch


def hold_out(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions 0..count-1 at random: four fifths to fit, one fifth (never empty) to judge."""
    order = torch.randperm(count, generator=generator)
    held = max(1, count // 5)
    return order[held:], order[:held]
