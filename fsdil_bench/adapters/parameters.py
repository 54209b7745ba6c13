"""The tensors that adapters are made of: how one kind starts, and how many numbers there are."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from .block import BlockAdapter


def identity_projection(
    width: int, generator: torch.Generator | None = None, std: float = 0.02
) -> torch.Tensor:
    """A C1 or C2 to start from: ones on the diagonal, normal noise elsewhere."""
    return (std * torch.randn(width, width, generator=generator)).fill_diagonal_(1.0)


def adapter_tensors(adapters: Iterable[BlockAdapter]) -> list[torch.Tensor]:
    """The tensors in all slots, those of branches that are modules included, each once.

    Folded projections are not among them: they are made from the model's weights.
    """
    found: list[torch.Tensor | None] = []
    for adapter in adapters:
        found += [adapter.query, adapter.value, adapter.tokens, adapter.kv_tokens]
        found += adapter.prefix or ()
        found += [tensor for pair in adapter.lora.values() for tensor in pair]
        for branch in (adapter.attention_branch, adapter.mlp_branch):
            found += branch.parameters() if isinstance(branch, torch.nn.Module) else ()
    return list({id(tensor): tensor for tensor in found if tensor is not None}.values())


def count_parameters(adapters: Iterable[BlockAdapter]) -> int:
    """How many numbers adapters hold; a tensor that several share counts once."""
    return sum(tensor.numel() for tensor in adapter_tensors(adapters))
