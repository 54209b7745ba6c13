"""PowerNorm, the element-wise root that evens out the coordinates of an embedding.

CVLC, embedding calibration. With a learned exponent alpha

    pn(x; alpha) = sign(x) (|x| + 1e-8)^alpha,      n(x) = x / max(|x|_2, 1e-12)

The paper only names PowerNorm; formula, constant and the missing normalisation after it are those
of the authors' code. alpha < 1 lifts small coordinates: a unit vector grows longer than 1, and it
is the classifier that normalises again.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

# Keeps the derivative finite where a coordinate is zero.
OFFSET = 1e-8
FLOOR = 1e-12


def pn(x: torch.Tensor, alpha: torch.Tensor | float) -> torch.Tensor:
    """PowerNorm of every coordinate; gradients reach `x` and `alpha`."""
    return x.sign() * (x.abs() + OFFSET) ** alpha


def unit(x: torch.Tensor) -> torch.Tensor:
    """Rows of length 1; a zero row stays zero."""
    return F.normalize(x, dim=-1, eps=FLOOR)
