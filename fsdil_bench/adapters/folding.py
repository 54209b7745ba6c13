"""Linear adapters as part of the projections, for evaluation.

Within a head, (x W + b) C = x (W C) + b C; torch stores W transposed, so that C^T stands in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from .block import BlockAdapter, Projections
from .towers import Tower, tower_blocks


@torch.no_grad()
def fold(tower: Tower, adapters: Sequence[BlockAdapter]) -> list[BlockAdapter]:
    """The same adapters with C1, C2 and LoRA multiplied into copies of the tower's projections.

    The result is used like any list of adapters, with the same tower. It is constant: it follows
    neither gradients nor later changes. All other slots stay as they are.
    """
    pairs = zip(tower_blocks(tower), adapters, strict=True)
    return [_folded(block.attn, adapter) for block, adapter in pairs]


def _folded(layer: torch.nn.MultiheadAttention, adapter: BlockAdapter) -> BlockAdapter:
    if adapter.query is None and adapter.value is None and not adapter.lora:
        return adapter
    own = adapter.projections or Projections.of(layer)
    maps = dict(zip(("q", "k", "v"), own.weight.chunk(3), strict=True)) | {"out": own.out}
    for name, (down, up) in adapter.lora.items():
        maps[name] = maps[name] + up @ down
    fused = torch.cat([maps[name] for name in "qkv"])
    # The bias as one more column, since C acts on it, too.
    q, k, v = torch.cat([fused, own.bias.unsqueeze(1)], 1).chunk(3)
    q, v = _turned(q, adapter.query, layer.num_heads), _turned(v, adapter.value, layer.num_heads)
    weight, bias = torch.cat([q, k, v]).split([layer.embed_dim, 1], dim=1)
    projections = Projections(weight.contiguous(), bias.flatten(), maps["out"])
    return replace(adapter, query=None, value=None, lora={}, projections=projections)


def _turned(rows: torch.Tensor, matrix: torch.Tensor | None, heads: int) -> torch.Tensor:
    if matrix is None:
        return rows
    return (matrix.mT @ rows.unflatten(0, (heads, -1))).flatten(0, 1)
