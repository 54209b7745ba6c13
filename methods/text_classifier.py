"""Class embeddings from text: CLIP's own classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from fsdil_bench import Context, RequestError, option

PHOTO = ("a photo of a {}.",)


def templates_option() -> Any:
    """The option for the sentences around class names, the same for all methods."""
    return option(PHOTO, "sentences with {} for the class name; a JSON list")


def class_embeddings(context: Context, templates: Sequence[str] = PHOTO) -> torch.Tensor:
    """One unit vector per class, (C, d): the direction of the mean over templates."""
    check_templates(templates)
    texts = [template.replace("{}", name) for name in context.class_names for template in templates]
    embeddings = context.backbone.encode_text(texts)
    per_class = embeddings.view(len(context.class_names), len(templates), -1)
    return F.normalize(per_class.mean(1), dim=-1)


def check_templates(templates: Sequence[str]) -> None:
    """Refuse sentences without a place for the class name, and none at all."""
    for template in templates:
        if "{}" not in template:
            raise RequestError(
                f"template '{template}' has no place for the class name", "Write {} where it goes."
            )
    if not templates:
        raise RequestError("there is no template", 'Give at least one, for instance ["{}"].')


def require_text(context: Context, option: str, instead: str) -> None:
    """Refuse an `option` that needs a text tower which the backbone does not have."""
    if not context.backbone.has_text:
        raise RequestError(
            f"{option} needs a text tower, backbone '{context.backbone.name}' has none",
            f"Choose another with --backbone, or set {instead}.",
        )
