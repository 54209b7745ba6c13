"""Noticing that shared weights were changed in place, without a copy of them."""

from __future__ import annotations

import torch


class WeightGuard:
    """Remembers the weights of a model as they are now."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._versions = _versions(model)

    def changed(self) -> bool:
        """Whether any weight was replaced or written to since."""
        return _versions(self._model) != self._versions


def _versions(model: torch.nn.Module) -> list[tuple[int, int]]:
    """Address and change counter of every weight: torch counts in-place changes."""
    tensors = [*model.parameters(), *model.buffers()]
    return [(tensor.data_ptr(), tensor._version) for tensor in tensors]
