"""Class attention: tokens that look at an image, each for itself.

DyTox (Douillard et al., CVPR 2022), task-attention block. With the tokens x of an image and a
learned token theta, one block of a transformer with the weights W gives

    e = theta + W_o attention( query LN(theta), keys and values LN([theta; x]) ),
    e <- e + MLP(LN_2(e)).

Several tokens never look at each other, so that a token's output does not depend on which others
there are. Keys and values of x are computed once for all of them.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F


class ClassAttention(torch.nn.Module):
    """A copy of a block of open_clip, in which learned tokens ask and an image is asked."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        self.block: Any = copy.deepcopy(block)

    def forward(self, tokens: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """What T tokens (n, T, w) make of n images with p tokens each, (n, p, w): (n, T, w)."""
        block, layer = self.block, self.block.attn
        asking, seen = block.ln_1(tokens), block.ln_1(x)
        weights, biases = layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3)

        def heads(y: torch.Tensor, part: int) -> torch.Tensor:
            y = F.linear(y, weights[part], biases[part])
            return y.unflatten(-1, (layer.num_heads, -1))

        q, k_own, v_own = (heads(asking, part) for part in range(3))  # (n, T, h, d)
        k, v = heads(seen, 1), heads(seen, 2)  # (n, p, h, d)
        others = torch.einsum("nthd,nphd->nthp", q, k)
        own = (q * k_own).sum(-1, keepdim=True)
        shares = (torch.cat([own, others], -1) / q.shape[-1] ** 0.5).softmax(-1)
        mixed = torch.einsum("nthp,nphd->nthd", shares[..., 1:], v) + shares[..., :1] * v_own
        out = tokens + block.ls_1(layer.out_proj(mixed.flatten(2)))
        return out + block.ls_2(block.mlp(block.ln_2(out)))
