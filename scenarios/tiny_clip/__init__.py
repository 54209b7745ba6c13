"""The `tiny-clip` backbone: a small two-tower CLIP, pre-trained on captions of drawn pictures.

Its weights come with the package; `python -m fsdil_scenarios.tiny_clip.pretrain` makes them.
"""

from __future__ import annotations

from fsdil_bench import BackboneInfo, hookimpl


@hookimpl
def fsdil_backbones() -> list[BackboneInfo]:
    """Offer `tiny-clip`."""
    return [
        BackboneInfo(
            "tiny-clip",
            "12+12 blocks of width 128 at 48 px, pre-trained on drawn pictures; in the package",
            "fsdil_scenarios.tiny_clip.backbone:build",
        )
    ]
