"""Frozen open_clip towers with small additions: all that parameter-efficient methods need.

A `BlockAdapter` says what is added to one block; `encode_image` and `encode_text` run a tower with
one adapter per block. The model is neither changed nor wrapped, and the tensors of an adapter live
wherever its method keeps them. With the tokens x, x' = LN_1(x) and heads of width d a block is

    q = (x' W_q + b_q + lora_q(x')) C1      k = x' W_k + b_k + lora_k(x')
    v = (x' W_v + b_v + lora_v(x')) C2      o = softmax(q [k_prefix; k]^T / sqrt(d)) [v_prefix; v]
    x <- x + o W_o + b_o + lora_out(o) + attention_branch(x')
    x <- x + MLP(LN_2(x)) + mlp_branch(LN_2(x)),

where C1 and C2 act within each head, and lora(y) = y D^T U^T without a factor.

Prompt tokens come before all other tokens. Among image tokens any other place would be the same:
attention does not know about order, and prompts have no position. In the text tower words see all
prompts and the words before them; prompts see each other, but no words.

Everything is differentiable with respect to the adapters. For evaluation, `fold` multiplies the
linear ones into copies of the projections, and a forward pass costs what the plain model costs.

Methods import this folder. It imports `errors` alone.
"""

from .block import (
    BlockAdapter,
    Projections,
    TowerTokens,
    attention,
    run_block,
    run_blocks,
)
from .folding import fold
from .parameters import adapter_tensors, count_parameters, identity_projection
from .text_tree import TextTree, text_tree
from .towers import (
    TowerShape,
    encode_embeddings,
    encode_image,
    encode_rest,
    encode_text,
    encode_tree,
    image_tokens,
    tower_blocks,
    tower_shape,
)

__all__ = [
    "BlockAdapter",
    "Projections",
    "TextTree",
    "TowerShape",
    "TowerTokens",
    "adapter_tensors",
    "attention",
    "count_parameters",
    "encode_embeddings",
    "encode_image",
    "encode_rest",
    "encode_text",
    "encode_tree",
    "fold",
    "identity_projection",
    "image_tokens",
    "run_block",
    "run_blocks",
    "text_tree",
    "tower_blocks",
    "tower_shape",
]
