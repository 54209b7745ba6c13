"""`tiny-clip` as a backbone: described from its files, built only when it must embed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch

from fsdil_bench import Backbone, ImageSpec

from .tokenizer import Tokenizer

_HERE = Path(__file__).parent


def build() -> Backbone:
    """The backbone with the weights of the package."""
    config = json.loads((_HERE / "model.json").read_text(encoding="utf-8"))
    preprocess = config["preprocess_cfg"]
    weights = _HERE / "weights.safetensors"
    return Backbone(
        "tiny-clip",
        build=_load,
        weights_hash=hashlib.sha256(weights.read_bytes()).hexdigest(),
        image=ImageSpec(
            config["model_cfg"]["vision_cfg"]["image_size"],
            tuple(preprocess["mean"]),
            tuple(preprocess["std"]),
        ),
        embed_dim=config["model_cfg"]["embed_dim"],
        tokenizer=Tokenizer.load(),
    )


def _load() -> torch.nn.Module:
    # Imported here: open_clip takes seconds to import, and cached features do without it.
    from .model import load_model

    return load_model()
