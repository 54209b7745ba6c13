"""A classifier on images mixed with CLIP's own: what several methods add to their scores."""

from __future__ import annotations

import torch


def mixed(
    scores: torch.Tensor, z: torch.Tensor, text: torch.Tensor, scale: float, share: float
) -> torch.Tensor:
    """(1 - share) softmax(scale z . w_c) + share scores, for unit features and texts."""
    return (1 - share) * (scale * z @ text.T).softmax(1) + share * scores
