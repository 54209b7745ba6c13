"""Backbones of open_clip with random weights, for forecasts: nothing is read or downloaded.

They have a file of their own because the code that loads weights is part of the ids of runs.
"""

from __future__ import annotations

import torch

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.frozen_embeddings import Tokenizer

from . import config_backbone, config_names
from .architecture import Architecture
from .known_texts import KnownTexts
from .loading import ImageSide, _untrained
from .names import resolve
from .open_clip_backbone import OpenClipTokenizer


def outline(name: str) -> Backbone:
    """The backbone `MODEL:WEIGHTS` without its weights."""
    plan = resolve(name)
    return _outline(str(plan), plan.architecture, OpenClipTokenizer(plan.architecture))


def config_outline(name: str) -> Backbone:
    """The backbone `CONFIG.json:WEIGHTS` without its weights."""
    plan = config_names.resolve(name)
    known = config_backbone.known_texts_of(plan)
    if known is not None:
        return _outline(str(plan), plan.architecture, known_texts=known)
    tokenizer = config_backbone.ConfigTokenizer(plan.architecture)
    return _outline(str(plan), plan.architecture, tokenizer)


def _outline(
    name: str,
    design: Architecture,
    tokenizer: Tokenizer | None = None,
    known_texts: KnownTexts | None = None,
) -> Backbone:
    def build() -> torch.nn.Module:
        model = _untrained(design)
        return model if known_texts is None else ImageSide(model.visual, None, design.model)

    return Backbone(
        name,
        build=build,
        weights_hash="random",
        image=ImageSpec(design.image_size, design.mean, design.std),
        embed_dim=design.embed_dim,
        tokenizer=tokenizer,
        known_texts=known_texts,
    )
