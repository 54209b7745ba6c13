"""Image and text towers of open_clip, from pixels and tokens to embeddings.

Only attributes are used that are the same in all versions; the embeddings are those that
`model.encode_image` and `model.encode_text` return, not normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fsdil_bench.errors import RequestError

from .block import Block, BlockAdapter, TowerTokens, batched, run_blocks
from .text_tree import TextTree

# `model.visual` for images; for text the model itself, or its `text` where it has one.
Tower = Any


@dataclass(frozen=True)
class TowerShape:
    """The sizes that adapters must have."""

    blocks: int
    width: int
    heads: int

    @property
    def head_width(self) -> int:
        """The width d of a head."""
        return self.width // self.heads


def tower_shape(tower: Tower) -> TowerShape:
    """The sizes of `model.visual`, or of the text tower of `model`."""
    blocks = tower_blocks(tower)
    return TowerShape(len(blocks), blocks[0].attn.embed_dim, blocks[0].attn.num_heads)


def encode_image(
    visual: Tower,
    pixels: Tensor,
    adapters: Sequence[BlockAdapter] = (),
    *,
    checkpoint: bool = False,
    lean: bool = False,
) -> Tensor:
    """Embeddings of normalised images.

    With `lean` the last block computes only the class token, which is all that is read: the same
    but for last bits, for 7 % less in ViT-B/16.
    """
    given = image_tokens(visual, pixels, adapters, checkpoint=checkpoint, lean=lean)
    return _project(visual.ln_post(given.tokens[:, 0]), visual.proj)


def encode_rest(
    visual: Tower,
    tokens: Tensor,
    adapters: Sequence[BlockAdapter],
    *,
    checkpoint: bool = False,
) -> Tensor:
    """Embeddings from the tokens that `image_tokens` returns for a `depth`: what is left of
    `encode_image(..., lean=True)`. There is one adapter for every block from there on.

    Where some towers have their first blocks in common, images run through these only once.
    """
    blocks = tower_blocks(visual)[-len(adapters) :]
    given = run_blocks(blocks, tokens, adapters, checkpoint=checkpoint, lean=True)
    return _project(visual.ln_post(given.tokens[:, 0]), visual.proj)


def image_tokens(
    visual: Tower,
    pixels: Tensor,
    adapters: Sequence[BlockAdapter] = (),
    *,
    depth: int | None = None,
    checkpoint: bool = False,
    lean: bool = False,
) -> TowerTokens:
    """The tokens after all blocks, or after `depth` of them; the class token is the first.

    `visual.ln_post(tokens[:, 0])` is the feature before the projection to the joint space. With
    `lean` that token is the only one: a last block that need not compute others is faster.
    """
    blocks = tower_blocks(visual, "conv1", "class_embedding", "ln_pre", "ln_post", "proj")
    if visual.attn_pool is not None or visual.pool_type != "tok":
        raise _unfit(visual, "it is not read at the class token")
    patches = visual.conv1(pixels).flatten(2).transpose(1, 2)
    first = visual.class_embedding.to(patches.dtype).expand(len(patches), 1, -1)
    x = torch.cat([first, patches], 1) + visual.positional_embedding.to(patches.dtype)
    return run_blocks(
        blocks, visual.ln_pre(x), adapters, depth=depth, checkpoint=checkpoint, lean=lean
    )


def encode_text(
    model: Tower,
    tokens: Tensor,
    adapters: Sequence[BlockAdapter] = (),
    *,
    context: Tensor | None = None,
    checkpoint: bool = False,
) -> Tensor:
    """Embeddings of tokenised texts.

    `context`, (M, w) or (B, M, w), comes after the start token: [start, context, words, end].
    What comes after the longest text is cut off. That is exact, since no token sees a later one.
    """
    ends = tokens.argmax(-1)  # the end token has the highest id
    words = _text_tower(model).token_embedding(tokens[:, : int(ends.max()) + 1])
    if context is not None:
        words = torch.cat([words[:, :1], batched(context, words), words[:, 1:]], 1)
        ends = ends + context.shape[-2]
    return encode_embeddings(model, words, ends, adapters, checkpoint=checkpoint)


def encode_tree(
    model: Tower,
    tree: TextTree,
    adapters: Sequence[BlockAdapter] = (),
    *,
    context: Tensor | None = None,
    checkpoint: bool = False,
    lean: bool = False,
) -> Tensor:
    """Embeddings of many texts, in the order in which `text_tree` got them.

    The same as those of `encode_text`, in much less time where texts are of different lengths or
    have beginnings in common. Adapters must be the same for all texts, and so must the `context`
    (M, w), for which the tree has to have room. It then is encoded once for all texts. With `lean`
    the last block computes only the ends of texts, where the tower is read.
    """
    text = _text_tower(model)
    x = text.token_embedding(tree.tokens)
    if context is not None:
        # The first text was laid out first: start token, context, words.
        x = torch.cat([x[:1], context.to(x.dtype), x[1 + len(context) :]])
    x = (x + text.positional_embedding[tree.positions].to(x.dtype))[None]
    blocks = tower_blocks(text)
    given = run_blocks(blocks, x, adapters, tree=tree, checkpoint=checkpoint, lean=lean)
    last = given.tokens[0] if lean else given.tokens[0][tree.ends]
    return _project(text.ln_final(last), text.text_projection)


def encode_embeddings(
    model: Tower,
    words: Tensor,
    ends: Tensor,
    adapters: Sequence[BlockAdapter] = (),
    *,
    checkpoint: bool = False,
) -> Tensor:
    """Embeddings of texts given as token embeddings (B, n, w), and where each of them ends."""
    text = _text_tower(model)
    length, limit = words.shape[1], len(text.positional_embedding)
    if length > limit:
        raise ValueError(f"{length} tokens do not fit: the text tower takes at most {limit}")
    x = words + text.positional_embedding[:length].to(words.dtype)
    x = run_blocks(tower_blocks(text), x, adapters, causal=True, checkpoint=checkpoint).tokens
    last = x[torch.arange(len(x), device=x.device), ends]
    return _project(text.ln_final(last), text.text_projection)


def tower_blocks(tower: Tower, *parts: str) -> Sequence[Block]:
    """The blocks of a tower that has these parts, if adapters can run it."""
    tower = getattr(tower, "text", tower)
    if missing := [part for part in ("transformer", *parts) if not hasattr(tower, part)]:
        raise _unfit(tower, f"it has no {', '.join(missing)}")
    blocks: Sequence[Block] = getattr(tower.transformer, "resblocks", ())
    if not blocks or not all(map(_is_plain, blocks)):
        raise _unfit(tower, "it is not made of pre-norm blocks with torch's attention")
    return blocks


def _is_plain(block: Block) -> bool:
    layer = getattr(block, "attn", None)
    return (
        isinstance(layer, torch.nn.MultiheadAttention)
        and layer.in_proj_weight is not None
        and layer.in_proj_bias is not None
        and all(hasattr(block, part) for part in ("ln_1", "ls_1", "ln_2", "ls_2", "mlp"))
    )


def _text_tower(model: Tower) -> Tower:
    text: Tower = getattr(model, "text", model)
    tower_blocks(text, "token_embedding", "positional_embedding", "ln_final", "attn_mask")
    pooling = getattr(text, "text_pool_type", getattr(text, "pool_type", None))
    if text.attn_mask is None or pooling != "argmax" or getattr(text, "cls_emb", None) is not None:
        raise _unfit(text, "its text tower is not causal, or not read at the end token")
    return text


def _project(x: Tensor, projection: Tensor | torch.nn.Module | None) -> Tensor:
    if isinstance(projection, torch.nn.Module):
        return projection(x)
    return x if projection is None else x @ projection


def _unfit(tower: Tower, why: str) -> RequestError:
    return RequestError(
        f"adapters cannot run a {type(tower).__name__}: {why}",
        "They need a CLIP of open_clip with a vision transformer, such as ViT-B-16-quickgelu.",
    )
