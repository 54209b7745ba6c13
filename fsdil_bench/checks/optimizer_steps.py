"""What torch's optimizers change while a method learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook


class Stepped:
    """The parameters that had a gradient when an optimizer made a step."""

    def __init__(self) -> None:
        # With the parameters themselves, so that no id is used twice.
        self._found: dict[int, torch.Tensor] = {}
        self._before: dict[int, tuple[float, float]] = {}  # sums, before the first step

    def note(self, optimizer: Optimizer, arguments: Any, options: Any) -> None:
        """Called before every step."""
        del arguments, options
        for group in optimizer.param_groups:
            for each in group["params"]:
                if each.grad is not None and id(each) not in self._found:
                    self._found[id(each)] = each
                    self._before[id(each)] = _sums(each)

    def numbers(self) -> int:
        """How many numbers had a gradient."""
        return sum(each.numel() for each in self._found.values())

    def moved(self) -> bool:
        """Whether any of them is different now: with a learning rate of 0, none is."""
        return any(_sums(each) != self._before[key] for key, each in self._found.items())


def _sums(parameter: torch.Tensor) -> tuple[float, float]:
    """What a change of the numbers changes, too; a copy of them would take memory."""
    values = parameter.detach().double()
    return float(values.sum()), float(values.square().sum())


@contextmanager
def optimizer_steps() -> Iterator[Stepped]:
    """Note the steps of all optimizers."""
    stepped = Stepped()
    hook = register_optimizer_step_pre_hook(stepped.note)
    try:
        yield stepped
    finally:
        hook.remove()
