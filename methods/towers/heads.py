"""Heads for methods that train additions to a frozen image tower.

A feature f is the tower's output token after its last norm, before the projection P to the joint
space. With the temperature s and the text embeddings w_c of CLIP, and n(.) scaling to unit length

    linear    W f + b, one classifier for all domains       what the original methods have
    text      s n(f P) . w_c, frozen                        CLIP's own classifier

In a stream of domains all classes are present all the time. So nothing here masks the logits of
"other tasks", as implementations for new classes do.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fsdil_bench import Context, State

from ..text_classifier import class_embeddings, require_text


def linear_start(
    classes: int, width: int, generator: torch.Generator, name: str = "head"
) -> dict[str, torch.Tensor]:
    """An untrained linear classifier, under the names that `linear_logits` expects."""
    weight = 0.02 * torch.randn(classes, width, generator=generator)
    return {f"{name}.weight": weight, f"{name}.bias": torch.zeros(classes)}


def linear_logits(features: torch.Tensor, weights: State, name: str = "head") -> torch.Tensor:
    """W f + b."""
    return F.linear(features, weights[f"{name}.weight"], weights[f"{name}.bias"])


class TextHead:
    """The frozen classifier made of class names; it adds nothing to a method's state."""

    def __init__(self, context: Context, templates: tuple[str, ...]) -> None:
        require_text(context, "head = text", "head=linear")
        self.text = class_embeddings(context, templates)
        self.scale = context.backbone.logit_scale
        self.projection: torch.Tensor | None = context.backbone.model.visual.proj  # type: ignore[assignment, union-attr]

    def embed(self, features: torch.Tensor) -> torch.Tensor:
        """Unit embeddings in the joint space."""
        joint = features if self.projection is None else features @ self.projection
        return F.normalize(joint, dim=-1)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Scaled similarities to the texts."""
        return self.scale * self.embed(features) @ self.text.T
