"""The tiny world with a small random CLIP of open_clip, for methods that add to its blocks."""

from __future__ import annotations

from pathlib import Path

import torch
from open_clip.model import CLIP
from tiny_world import World, tokenize

from fsdil_bench import Batch

BLOCKS, WIDTH, DIM, CLASSES, TOKENS = 5, 32, 24, 4, 5
TRAINED_HEAD = CLASSES * WIDTH + CLASSES
QUICK = {"base_epochs": 1, "steps": 3, "batch_size": 16, "lr": 1e-2}


def build_model() -> CLIP:
    """Attention is sharp and biases are not zero, so that mistakes show."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        vision = {"image_size": 8, "patch_size": 4, "width": WIDTH, "layers": BLOCKS}
        text = {"context_length": 40, "vocab_size": 128, "width": 16, "heads": 2, "layers": 1}
        model = CLIP(embed_dim=DIM, vision_cfg=vision | {"head_width": 16}, text_cfg=text)
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.1 * torch.randn_like(weight)
            model.logit_scale.fill_(3.0)
    return model


class TowerWorld(World):
    """One small CLIP, the stream of the tiny world."""

    def __init__(self, folder: Path, text: bool = True) -> None:
        super().__init__(folder, text=text)
        self.use("small", build_model, "1" * 64, DIM, tokenize if text else None)


def random_batch(count: int = 9, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(count, 3, 8, 8, generator=generator)
    queries = torch.randn(count, DIM, generator=generator)
    return Batch(images, torch.nn.functional.normalize(queries, dim=1))
