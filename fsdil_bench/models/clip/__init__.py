"""Backbones of open_clip: `MODEL:TAG`, `MODEL:FILE` or `MODEL:IMAGE+TEXT`, and the last two with a
configuration of one's own, `CONFIG.json`, in place of a model's name.

`names` says what such a name means, `catalogue` what open_clip knows, `published` and `checksums`
find the files, `checkpoint` and `archive` read them without running anything in them, `loading`
puts them into a model, `known_texts` replaces a text tower, and `open_clip_backbone` puts it all
together. `config_names`, `config_file` and `config_backbone` do the same for `CONFIG.json`.

This folder is a plugin: nothing but the table of public names imports it. It imports the rest of
`models` and what that may import.
"""

from __future__ import annotations

from fsdil_bench.plugins.descriptors import BackboneInfo
from fsdil_bench.plugins.hookspecs import hookimpl


@hookimpl
def fsdil_backbones() -> list[BackboneInfo]:
    """Offer every model of open_clip. The narrower family comes first: names are tried in order."""
    return [
        BackboneInfo(
            "open-clip-config",
            "towers of your own in files; CONFIG.json is their configuration as open_clip has it",
            "fsdil_bench.models.clip.config_backbone:build",
            pattern="<CONFIG>.json:<files>",
            example="config.json:visual.safetensors+text.safetensors",
            check="fsdil_bench.models.clip.config_names:check",
            outline="fsdil_bench.models.clip.outline:config_outline",
        ),
        BackboneInfo(
            "open-clip",
            "any model of open_clip; weights are a published tag, a file, or image+text files",
            "fsdil_bench.models.clip.open_clip_backbone:build",
            pattern="<MODEL>:<weights>",
            example="ViT-B-16-quickgelu:openai",
            check="fsdil_bench.models.clip.names:check",
            outline="fsdil_bench.models.clip.outline:outline",
        ),
    ]
