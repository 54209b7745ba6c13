"""A backbone of open_clip with random weights, for forecasts: nothing is read or downloaded.

It has a file of its own because the code that loads weights is part of the ids of runs.
"""

from __future__ import annotations

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.models.backbone import Backbone

from .loading import _untrained
from .names import resolve
from .open_clip_backbone import OpenClipTokenizer


def outline(name: str) -> Backbone:
    """The backbone `MODEL:WEIGHTS` without its weights."""
    plan = resolve(name)
    design = plan.architecture
    return Backbone(
        str(plan),
        build=lambda: _untrained(design),
        weights_hash="random",
        image=ImageSpec(design.image_size, design.mean, design.std),
        embed_dim=design.embed_dim,
        tokenizer=OpenClipTokenizer(design),
    )
