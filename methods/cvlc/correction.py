"""Prototype correction: stored prototypes follow the drift of the shared parameters.

CVLC, applied after every domain but the first. Training domain t moves its own prototypes from
before_j to after_j, which can be measured. A stored prototype p of an earlier domain follows the
prototypes it is similar to:

    delta_j = after_j - before_j
    w = softmax_j( gamma cos(p, before_j) ),      p <- p + sum_j w_j delta_j

The result is not normalised. gamma is not in the paper; the authors use 10. The main text writes
the difference between two domains and indexes delta by the prototype's own class, which would drag
old prototypes onto the new domain; this is the version of the supplement and of the code.
"""

from __future__ import annotations

import torch

from .power_norm import unit

GAMMA = 10.0


def correct(
    stored: torch.Tensor, before: torch.Tensor, after: torch.Tensor, gamma: float = GAMMA
) -> torch.Tensor:
    """Moved prototypes, shape of `stored` (..., d); `before` and `after` are (C, d)."""
    weights = (gamma * unit(stored) @ unit(before).T).softmax(-1)
    return stored + weights @ (after - before)
