"""A backbone plugin for the tests: OpenAI's CLIP ViT-B/16 as far as FSDIL_TEST_ASSETS has it.

The image tower is an int8 file: `name::q` (int8, rows) and `name::s` (one scale per row) for every
matrix and plain floats for the rest, under open_clip's names, `visual.proj` transposed. There is no
text tower, but embeddings of the 171 names of COCO. None of it is part of the project.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from fsdil_bench import (
    Backbone,
    BackboneInfo,
    KnownTexts,
    hookimpl,
    open_clip_backbone,
)

TOWER = "openai_clip_vitb16_visual_int8.safetensors"
TEXTS = "vitb16_text_embeddings"


def weights() -> Path:
    return Path(os.environ["FSDIL_TEST_ASSETS"]) / "weights"


def dequantise() -> dict[str, torch.Tensor]:
    stored = load_file(weights() / TOWER)
    tensors = {}
    for name, value in stored.items():
        if name.endswith("::q"):
            plain = name.removesuffix("::q")
            scale = stored[f"{plain}::s"]
            tensors[plain] = value.float() * scale.view(-1, *[1] * (value.ndim - 1))
        elif not name.endswith("::s"):
            tensors[name] = value.float()
    tensors["visual.proj"] = tensors["visual.proj"].T.contiguous()
    return tensors


def describe(name: str, weights_hash: str, known_texts: KnownTexts | None = None) -> Backbone:
    return open_clip_backbone(
        name,
        "ViT-B-16-quickgelu",
        weights=dequantise,
        weights_hash=weights_hash,
        text_tower=False,
        known_texts=known_texts,
        image_tower=("vit-b16-visual", "openai-vit-b16-visual-int8"),
    )


def build_visual() -> Backbone:
    return describe("vit-b16-visual", "openai-vit-b16-visual-int8")


def build_with_texts() -> Backbone:
    names = json.loads((weights() / TEXTS / "coco_names_171.json").read_text())
    embeddings = np.load(weights() / TEXTS / "coco_multi.npy")
    known = KnownTexts(names, embeddings, source="coco_multi.npy")
    return describe("vit-b16-coco-text", "openai-vit-b16-visual-int8+coco-multi", known)


@hookimpl
def fsdil_backbones() -> list[BackboneInfo]:
    return [
        BackboneInfo("vit-b16-visual", "CLIP ViT-B/16, image tower", build_visual, has_text=False),
        BackboneInfo("vit-b16-coco-text", "with embeddings of COCO's names", build_with_texts),
    ]
