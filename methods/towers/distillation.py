"""Knowledge distillation (Hinton et al., 2015): outputs that a model had before teach it later."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def distillation(logits: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
    """KL( softmax(taught) || softmax(logits) ), the mean over rows."""
    return F.kl_div(
        logits.log_softmax(1), taught.log_softmax(1), reduction="batchmean", log_target=True
    )
