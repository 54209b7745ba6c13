"""How much an image counts in a pooled estimate.

The base domain has all its images, a later one K per class. If every image counts the same, any
pooled estimate is that of the base domain. With N_t images in domain t, n_tc of them of class c,

    count     1                 every image counts the same
    domain    16 C / N_t        every domain counts like 16 images per class
    cell      16 / n_tc         every class of every domain counts like 16 images
"""

from __future__ import annotations

from typing import Literal

import torch

Weighting = Literal["count", "domain", "cell"]
SHOTS = 16  # as many as the constants of RAIL were made for


def sample_weights(labels: torch.Tensor, classes: int, weighting: Weighting) -> torch.Tensor:
    """The weights of a domain's images, (n,), in double precision."""
    if weighting == "count":
        return torch.ones(len(labels), dtype=torch.float64, device=labels.device)
    if weighting == "domain":
        share = SHOTS * classes / len(labels)
        return torch.full((len(labels),), share, dtype=torch.float64, device=labels.device)
    return SHOTS / labels.bincount(minlength=classes)[labels].double()
