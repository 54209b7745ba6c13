"""One transformer block with additions, and a sequence of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import checkpoint as checkpointing

from .text_tree import TextTree, attend

# A block of open_clip, whose attributes have no types.
Block = Any
Branch = Callable[[Tensor], Tensor]


class Projections(NamedTuple):
    """The linear maps of an attention layer: fused q, k, v with bias, and the output's weight."""

    weight: Tensor
    bias: Tensor
    out: Tensor

    @classmethod
    def of(cls, layer: torch.nn.MultiheadAttention) -> Projections:
        """The layer's own."""
        return cls(layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight)


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockAdapter:
    """What is added to one block; `BlockAdapter()` is the plain block.

    P tokens of width w are given as (P, w), or as (B, P, w) if every sample has its own.

    - query: C1, (d, d) for all heads or (heads, d, d).
    - value: C2, likewise.
    - lora: for any of "q", "k", "v" and "out" the pair D (r, w), U (w, r).
    - tokens: prompts from this block on, instead of those of earlier blocks. Where a block has
      none, the outputs at prompt positions continue; P = 0 ends them. So prompts of block 0 alone
      are shallow ones, and `visual.ln_pre(prompts)` puts them before the first norm.
    - prefix: keys and values for all heads side by side, neither projected nor adapted.
    - kv_tokens: tokens that only provide keys and values: normed, projected and adapted as usual.
    - attention_branch, mlp_branch: run beside attention and MLP, on the same normed tokens.
    - projections: used instead of the block's own; what `fold` makes.
    """

    query: Tensor | None = None
    value: Tensor | None = None
    lora: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    tokens: Tensor | None = None
    prefix: tuple[Tensor, Tensor] | None = None
    kv_tokens: Tensor | None = None
    attention_branch: Branch | None = None
    mlp_branch: Branch | None = None
    projections: Projections | None = None

    def __post_init__(self) -> None:
        if unknown := set(self.lora) - {"q", "k", "v", "out"}:
            raise ValueError(f"lora on {sorted(unknown)}: there are 'q', 'k', 'v' and 'out'")
        for matrix in (self.query, self.value):
            if matrix is not None and matrix.ndim not in (2, 3):
                shape = tuple(matrix.shape)
                raise ValueError(f"a matrix of shape {shape}: it must be (d, d) or (heads, d, d)")


class TowerTokens(NamedTuple):
    """The tokens that leave the last block, prompts separate: (B, P, w) and (B, n, w)."""

    prompts: Tensor
    tokens: Tensor


def run_blocks(
    blocks: Sequence[Block],
    x: Tensor,
    adapters: Sequence[BlockAdapter] = (),
    *,
    causal: bool = False,
    tree: TextTree | None = None,
    depth: int | None = None,
    checkpoint: bool = False,
) -> TowerTokens:
    """Send tokens through all blocks, or the first `depth`; one adapter per block, or none at all.

    With a `tree`, x (1, N, w) are its tokens, which see those on the way to them.
    `checkpoint` recomputes activations in the backward pass: slower, in much less memory.
    """
    adapters = adapters or [BlockAdapter()] * len(blocks)
    if len(adapters) != len(blocks):
        raise ValueError(f"{len(adapters)} adapters for {len(blocks)} blocks: give one for each")
    prompts = 0
    for block, adapter in list(zip(blocks, adapters, strict=True))[:depth]:
        if adapter.tokens is not None:
            if tree is not None:
                raise ValueError("texts in a tree cannot have tokens; kv_tokens are as good")
            x = torch.cat([batched(adapter.tokens, x), x[:, prompts:]], 1)
            prompts = adapter.tokens.shape[-2]
        mask = _causal_mask(prompts, x) if causal else tree
        if checkpoint and torch.is_grad_enabled():
            x = checkpointing.checkpoint(run_block, block, x, adapter, mask, use_reentrant=False)
        else:
            x = run_block(block, x, adapter, mask)
    return TowerTokens(x[:, :prompts], x[:, prompts:])


def run_block(
    block: Block, x: Tensor, adapter: BlockAdapter, mask: Tensor | TextTree | None = None
) -> Tensor:
    """One block on tokens that already hold the prompts; a mask is true where a token may look."""
    normed = block.ln_1(x)
    extra = None if adapter.kv_tokens is None else block.ln_1(_rows(adapter.kv_tokens, x))
    x = x + block.ls_1(attention(block.attn, normed, adapter, mask, extra))
    if adapter.attention_branch is not None:
        x = x + adapter.attention_branch(normed)
    normed = block.ln_2(x)
    x = x + block.ls_2(block.mlp(normed))
    if adapter.mlp_branch is not None:
        x = x + adapter.mlp_branch(normed)
    return x


def attention(
    layer: torch.nn.MultiheadAttention,
    x: Tensor,
    adapter: BlockAdapter,
    mask: Tensor | TextTree | None = None,
    extra: Tensor | None = None,
) -> Tensor:
    """Self-attention of x (B, n, w); `extra` tokens are looked at, but do not look.

    `extra` is (B, P, w), or (1, P, w) if all samples have the same.
    """
    q, k, v = _projected(layer, x, adapter)
    others = [] if extra is None else [_projected(layer, extra, adapter)[1:]]
    if adapter.prefix is not None:
        keys, values = (_heads(layer, _rows(y, x)) for y in adapter.prefix)
        others.append((keys, values))
    if isinstance(mask, TextTree):
        o = mask.attend(q, k, v, others)
    else:
        o = attend(q, k, v, others, mask)
    own = adapter.projections or Projections.of(layer)
    return _with_lora(F.linear(o, own.out, layer.out_proj.bias), o, adapter.lora.get("out"))


def batched(tokens: Tensor, x: Tensor) -> Tensor:
    """Tokens for every sample of x, in its precision."""
    return _rows(tokens, x).expand(len(x), -1, -1)


def _rows(tokens: Tensor, x: Tensor) -> Tensor:
    """Tokens as (B, P, w) if every sample of x has its own, else as (1, P, w)."""
    if tokens.ndim == 3 and len(tokens) != len(x):
        raise ValueError(f"tokens for {len(tokens)} samples in a batch of {len(x)}")
    return tokens.to(x.dtype) if tokens.ndim == 3 else tokens.to(x.dtype)[None]


def _projected(
    layer: torch.nn.MultiheadAttention, x: Tensor, adapter: BlockAdapter
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of all heads, adapted: three times (B, heads, n, d)."""
    own = adapter.projections or Projections.of(layer)
    fused = F.linear(x, own.weight, own.bias).chunk(3, dim=-1)
    q, k, v = (
        _heads(layer, _with_lora(y, x, adapter.lora.get(name)))
        for name, y in zip("qkv", fused, strict=True)
    )
    if adapter.query is not None:
        q = q @ adapter.query
    if adapter.value is not None:
        v = v @ adapter.value
    return q, k, v


def _heads(layer: torch.nn.MultiheadAttention, y: Tensor) -> Tensor:
    return y.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)


def _with_lora(y: Tensor, x: Tensor, pair: tuple[Tensor, Tensor] | None) -> Tensor:
    if pair is None:
        return y
    down, up = pair
    return y + F.linear(F.linear(x, down), up)


def _causal_mask(prompts: int, x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
    mask[:, :prompts] = True
    return mask
