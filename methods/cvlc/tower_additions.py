"""What CVLC trains inside the towers: dual coalescent projections, LoRA, prompts, or nothing.

Dual coalescent projections (the paper's choice) are two matrices per block, C1 on the queries and
C2 on the values, one for all heads:

    logits_ij = q_i C1 k_j' / sqrt(d),      o_i = sum_j a_ij v_j C2

LoRA (ablation) adds low-rank updates to the query and value projections; deep prompts (ablation)
put trained tokens in front of every block's own. The first blocks of a tower are *shared*: trained
in every domain. The last ones are *specific*: every domain has its own, trained in that domain
only and started from those of the base domain.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import nn

from fsdil_bench.adapters import BlockAdapter, TowerShape, identity_projection

Kind = Literal["dcp", "lora", "prompt", "none"]


class Additions(nn.Module):
    """Trained tensors for `count` consecutive blocks of one tower."""

    def __init__(
        self,
        kind: Kind,
        count: int,
        shape: TowerShape,
        *,
        rank: int,
        length: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.kind = kind
        make = {"dcp": _projections, "lora": _lora, "prompt": _prompts, "none": _nothing}[kind]
        blocks = [make(shape, rank, length, generator) for _ in range(count)]
        self.blocks = nn.ModuleList(
            nn.ParameterDict({name: nn.Parameter(tensor) for name, tensor in block.items()})
            for block in blocks
        )

    def adapters(self) -> list[BlockAdapter]:
        """One adapter per block, made of these tensors."""
        return [_adapter(self.kind, block) for block in self.blocks]


def _projections(
    shape: TowerShape, rank: int, length: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    del rank, length
    width = shape.head_width
    return {name: identity_projection(width, generator) for name in ("query", "value")}


def _lora(
    shape: TowerShape, rank: int, length: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    del length
    # Kaiming-uniform with a = sqrt(5), as for linear layers: U(-b, b) with b = 1 / sqrt(width).
    bound = 1 / math.sqrt(shape.width)
    tensors: dict[str, torch.Tensor] = {}
    for name in ("q", "v"):
        down = torch.empty(rank, shape.width).uniform_(-bound, bound, generator=generator)
        tensors |= {f"{name}_down": down, f"{name}_up": torch.zeros(shape.width, rank)}
    return tensors


def _prompts(
    shape: TowerShape, rank: int, length: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    del rank
    tokens = torch.randn(length, shape.width, generator=generator)
    return {"tokens": tokens / math.sqrt(shape.width)}


def _nothing(
    shape: TowerShape, rank: int, length: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    del shape, rank, length, generator
    return {}


def _adapter(kind: Kind, block: nn.Module) -> BlockAdapter:
    tensors = dict(block.named_parameters())
    if kind == "none":
        return BlockAdapter()
    if kind == "dcp":
        return BlockAdapter(query=tensors["query"], value=tensors["value"])
    if kind == "prompt":
        # Every block replaces the prompts, so that nothing but their keys and values is ever used.
        return BlockAdapter(kv_tokens=tensors["tokens"])
    pairs = {name: (tensors[f"{name}_down"], tensors[f"{name}_up"]) for name in ("q", "v")}
    return BlockAdapter(lora=pairs)
