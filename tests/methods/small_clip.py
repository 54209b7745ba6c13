"""The tiny world with a real open_clip model: three blocks in each tower, random weights."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import torch
from open_clip.model import CLIP
from tiny_world import DIM, World

WIDTH, BLOCKS, CONTEXT = 32, 3, 20
END = 65


def build_model() -> CLIP:
    """Weights with some noise: open_clip starts some of them at zero, where errors hide."""
    vision = {"image_size": 8, "patch_size": 4, "width": WIDTH, "layers": BLOCKS, "head_width": 16}
    text = {
        "context_length": CONTEXT, "vocab_size": END + 1, "width": WIDTH, "heads": 2,
        "layers": BLOCKS,
    }  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = CLIP(embed_dim=DIM, vision_cfg=vision, text_cfg=text)
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.1 * torch.randn_like(weight)
            model.logit_scale.fill_(3.0)
    return model


def tokenize(texts: list[str]) -> torch.Tensor:
    """[start, words and full stops, end, padding]."""
    rows = torch.zeros(len(texts), CONTEXT, dtype=torch.long)
    for row, text in zip(rows, texts, strict=True):
        words = re.findall(r"[\w-]+|\.", text)[: CONTEXT - 2]
        ids = [1, *(zlib.crc32(word.encode()) % 60 + 2 for word in words), END]
        row[: len(ids)] = torch.tensor(ids)
    return rows


class ClipWorld(World):
    """One model, one stream, one cache."""

    def __init__(self, folder: Path, text: bool = True, seed: int = 3) -> None:
        super().__init__(folder, seed=seed)
        self.use("small", build_model, "small", DIM, tokenize if text else None)
