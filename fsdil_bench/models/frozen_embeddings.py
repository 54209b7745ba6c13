"""Unit embeddings by the frozen towers of a model, in full precision.

Embeddings that are kept for all runs are made in batches padded to one size, so that they do not
depend on what else is in a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from .batches import Batches, padded
from .device import full_precision

Tokenizer = Callable[[list[str]], torch.Tensor]
Say = Callable[[str], None]

_KEPT_BATCH = 32  # images or texts per pass where embeddings are kept: enough for any GPU


@torch.no_grad()
def embed_images(
    model: torch.nn.Module, pixels: torch.Tensor, batches: Batches, say: Say, *, kept: bool
) -> torch.Tensor:
    """Embeddings of normalised images, (n, d), on the device of `batches`."""

    def embed(rows: slice, size: int) -> torch.Tensor:
        part = pixels[rows].to(batches.device)
        whole = padded(part, size if kept else 1)
        with full_precision(batches.device):
            return model.encode_image(whole)[: len(part)]  # type: ignore[operator]

    raw = batches.run(embed, len(pixels), say, _KEPT_BATCH if kept else None)
    return F.normalize(raw.float(), dim=-1)


@torch.no_grad()
def embed_texts(
    model: torch.nn.Module, tokenize: Tokenizer, texts: list[str], batches: Batches, say: Say
) -> dict[str, np.ndarray]:
    """Embeddings of texts, to be kept."""

    def embed(rows: slice, size: int) -> torch.Tensor:
        part = texts[rows]
        tokens = tokenize(part + [""] * (size - len(part))).to(batches.device)
        with full_precision(batches.device):
            return model.encode_text(tokens)[: len(part)]  # type: ignore[operator]

    raw = batches.run(embed, len(texts), say, _KEPT_BATCH)
    unit = F.normalize(raw.float(), dim=-1).cpu().numpy()
    return dict(zip(texts, unit, strict=True))
