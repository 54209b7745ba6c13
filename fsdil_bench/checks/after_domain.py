"""A method after a domain: its state and its predictions, to be compared between runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fsdil_bench.plugins.method import State


@dataclass(frozen=True)
class AfterDomain:
    """A method after a domain: copies of its state, and what it predicts for the tests so far."""

    state: State
    classes: Any
    domains: Any = None  # guessed, by a router

    def digest(self) -> str:
        """Equal for equal states and predictions, to the last bit."""
        found = hashlib.blake2b(digest_size=16)
        guesses = {"classes": self.classes, "domains": self.domains}
        for name, value in [*sorted(self.state.items()), *guesses.items()]:
            array = np.ascontiguousarray(as_array(value))
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(array.tobytes())
        return found.hexdigest()


def as_array(value: Any) -> np.ndarray:
    """Anything a method may return, as an array."""
    if torch.is_tensor(value):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray(value) if value is not None else np.zeros(0)
