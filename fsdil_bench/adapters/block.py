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
# Which of the tokens are meant.
Places = slice | Tensor


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
    lean: bool = False,
) -> TowerTokens:
    """Send tokens through all blocks, or the first `depth`; one adapter per block, or none at all.

    With a `tree`, x (1, N, w) are its tokens, which see those on the way to them.
    `checkpoint` recomputes activations in the backward pass: slower, in much less memory.
    `lean` returns only what a tower is read at, the first token after the prompts or, with a
    `tree`, the end of every text. Then the last block need not compute the others.
    """
    blocks = list(blocks)[:depth]
    adapters = list(adapters)[:depth] or [BlockAdapter()] * len(blocks)
    if len(adapters) != len(blocks):
        raise ValueError(f"{len(adapters)} adapters for {len(blocks)} blocks: give one for each")
    prompts = 0
    for block, adapter in zip(blocks, adapters, strict=True):
        if adapter.tokens is not None:
            if tree is not None:
                raise ValueError("texts in a tree cannot have tokens; kv_tokens are as good")
            x = torch.cat([batched(adapter.tokens, x), x[:, prompts:]], 1)
            prompts = adapter.tokens.shape[-2]
        mask = _causal_mask(prompts, x) if causal else tree
        read: Places | None = None
        if lean and block is blocks[-1]:
            read = slice(prompts, prompts + 1) if tree is None else tree.ends
            prompts = 0
        if checkpoint and torch.is_grad_enabled():
            given = (run_block, block, x, adapter, mask, read)
            x = checkpointing.checkpoint(*given, use_reentrant=False)
        else:
            x = run_block(block, x, adapter, mask, read)
    return TowerTokens(x[:, :prompts], x[:, prompts:])


def run_block(
    block: Block,
    x: Tensor,
    adapter: BlockAdapter,
    mask: Tensor | TextTree | None = None,
    read: Places | None = None,
) -> Tensor:
    """One block on tokens that already hold the prompts; a mask is true where a token may look.

    Only the tokens at `read` are computed, if it is given: of a tree, all its ends.
    """
    if read is not None and (adapter.attention_branch or adapter.mlp_branch):
        # A branch may do anything with the tokens: it gets all of them.
        return _at(run_block(block, x, adapter, mask), read)
    normed = block.ln_1(x)
    extra = None if adapter.kv_tokens is None else block.ln_1(_rows(adapter.kv_tokens, x))
    if read is not None:
        x = _at(x, read)
    x = x + block.ls_1(attention(block.attn, normed, adapter, mask, extra, read))
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
    read: Places | None = None,
) -> Tensor:
    """Self-attention of x (B, n, w); `extra` tokens are looked at, but do not look.

    `extra` is (B, P, w), or (1, P, w) if all samples have the same. Only tokens at `read` look, if
    it is given.
    """
    q, k, v = _projected(layer, x, adapter, read)
    others = [] if extra is None else [_projected(layer, extra, adapter)[1:]]
    if adapter.prefix is not None:
        keys, values = (_heads(layer, _rows(y, x)) for y in adapter.prefix)
        others.append((keys, values))
    if isinstance(mask, TextTree):
        o = mask.attend(q, k, v, others) if read is None else mask.attend_at_ends(q, k, v, others)
    else:
        seen = mask if mask is None or read is None else mask[read]
        o = attend(q, k, v, others, seen)
    own = adapter.projections or Projections.of(layer)
    return _with_lora(F.linear(o, own.out, layer.out_proj.bias), o, adapter.lora.get("out"))


def _at(x: Tensor, places: Places) -> Tensor:
    return x[:, places] if isinstance(places, slice) else x.index_select(1, places)


def batched(tokens: Tensor, x: Tensor) -> Tensor:
    """Tokens for every sample of x, in its precision."""
    return _rows(tokens, x).expand(len(x), -1, -1)


def _rows(tokens: Tensor, x: Tensor) -> Tensor:
    """Tokens as (B, P, w) if every sample of x has its own, else as (1, P, w)."""
    if tokens.ndim == 3 and len(tokens) != len(x):
        raise ValueError(f"tokens for {len(tokens)} samples in a batch of {len(x)}")
    return tokens.to(x.dtype) if tokens.ndim == 3 else tokens.to(x.dtype)[None]


def _projected(
    layer: torch.nn.MultiheadAttention,
    x: Tensor,
    adapter: BlockAdapter,
    read: Places | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries (of the tokens at `read`, or of all), keys and values of all heads, adapted: three
    times (B, heads, n, d)."""
    own = adapter.projections or Projections.of(layer)
    inputs = (x, x, x)
    if read is None:
        fused = F.linear(x, own.weight, own.bias).chunk(3, dim=-1)
    else:
        width, looking = layer.embed_dim, _at(x, read)
        inputs = (looking, x, x)
        others = F.linear(x, own.weight[width:], own.bias[width:]).chunk(2, dim=-1)
        fused = (F.linear(looking, own.weight[:width], own.bias[:width]), *others)
    q, k, v = (
        _heads(layer, _with_lora(y, given, adapter.lora.get(name)))
        for name, y, given in zip("qkv", fused, inputs, strict=True)
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
