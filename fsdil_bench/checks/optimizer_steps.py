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

    def note(self, optimizer: Optimizer, arguments: Any, options: Any) -> None:
        """Called before every step."""
        del arguments, options
        for group in optimizer.param_groups:
            for each in group["params"]:
                if each.grad is not None:
                    self._found[id(each)] = each

    def numbers(self) -> int:
        """How many numbers were changed."""
        return sum(each.numel() for each in self._found.values())


@contextmanager
def optimizer_steps() -> Iterator[Stepped]:
    """Note the steps of all optimizers."""
    stepped = Stepped()
    hook = register_optimizer_step_pre_hook(stepped.note)
    try:
        yield stepped
    finally:
        hook.remove()
