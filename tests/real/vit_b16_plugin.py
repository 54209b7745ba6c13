"""A backbone plugin for the tests: the image tower of OpenAI's CLIP ViT-B/16 from an int8 file.

The file holds `name::q` (int8, rows) and `name::s` (one scale per row) for every matrix and plain
floats for the rest, under open_clip's names; `visual.proj` is stored transposed. It lies in the
folder that FSDIL_TEST_ASSETS names and is not part of the project.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from safetensors.torch import load_file

from fsdil_bench import Backbone, BackboneInfo, ImageSpec, hookimpl

FILE = "weights/openai_clip_vitb16_visual_int8.safetensors"


def dequantise(path: Path) -> dict[str, torch.Tensor]:
    stored = load_file(path)
    weights = {}
    for name, value in stored.items():
        if name.endswith("::q"):
            plain = name.removesuffix("::q")
            scale = stored[f"{plain}::s"]
            weights[plain] = value.float() * scale.view(-1, *[1] * (value.ndim - 1))
        elif not name.endswith("::s"):
            weights[name] = value.float()
    weights["visual.proj"] = weights["visual.proj"].T.contiguous()
    return weights


class VisualOnly(torch.nn.Module):
    def __init__(self, visual: torch.nn.Module) -> None:
        super().__init__()
        self.visual = visual
        self.logit_scale = torch.nn.Parameter(torch.tensor(100.0).log())

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.visual(pixels)


def build_model() -> torch.nn.Module:
    import open_clip

    model = open_clip.create_model("ViT-B-16-quickgelu", load_weights=False)
    weights = dequantise(Path(os.environ["FSDIL_TEST_ASSETS"]) / FILE)
    own = {name.removeprefix("visual."): value for name, value in weights.items()}
    shapes = {name: value.shape for name, value in model.visual.state_dict().items()}
    model.visual.load_state_dict({name: v.reshape(shapes[name]) for name, v in own.items()})
    return VisualOnly(model.visual)


def build() -> Backbone:
    return Backbone(
        "vit-b16-visual",
        build=build_model,
        weights_hash="openai-vit-b16-visual-int8",
        image=ImageSpec(224),
        embed_dim=512,
    )


@hookimpl
def fsdil_backbones() -> list[BackboneInfo]:
    return [BackboneInfo("vit-b16-visual", "CLIP ViT-B/16, image tower", build, has_text=False)]
