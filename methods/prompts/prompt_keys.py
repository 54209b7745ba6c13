"""Keys, queries and prefixes: what the methods with a pool of prompts share.

L2P, DualPrompt and CODA-Prompt all compare a query q of the image with learned keys. In the
originals q is the class token of the frozen tower for the very view that is trained on, at the cost
of one more forward pass. Here it is the frozen embedding of the plain view, in the joint space,
which the harness keeps: 512 numbers instead of 768 in ViT-B/16, so that keys are smaller by as
much, and an image's query is the same in training as in testing.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from fsdil_bench import RequestError
from fsdil_bench.adapters import BlockAdapter, TowerShape

Prefix = tuple[torch.Tensor, torch.Tensor]


def cosine(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Similarity of every query (n, d) to every key (m, d): (n, m).

    Always in full precision: the choice of a key depends on small differences.
    """
    with torch.autocast(queries.device.type, enabled=False):
        return F.normalize(queries.float(), dim=-1) @ F.normalize(keys, dim=-1).T


def prefix_adapters(shape: TowerShape, prefixes: Mapping[int, Prefix]) -> list[BlockAdapter]:
    """A tower with keys and values in front of those of some blocks.

    They are not projected, and queries stay as they are, so that no token is added to the sequence.
    """
    return [BlockAdapter(prefix=prefixes.get(block)) for block in range(shape.blocks)]


def require_blocks(shape: TowerShape, wanted: int, option: str) -> None:
    """Refuse an `option` that asks for more blocks than the tower has."""
    if wanted > shape.blocks:
        raise RequestError(
            f"{option} asks for {wanted} blocks, the image tower has {shape.blocks}",
            "Choose fewer with --set.",
        )
