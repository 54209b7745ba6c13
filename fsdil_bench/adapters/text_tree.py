"""Many texts as one tree of tokens, so that what they have in common is encoded once.

In a causal tower a token depends on itself and on those before it. So two texts that start alike
have the same activations as far as they do, and all texts together need one token per distinct
beginning: no padding, no repeated texts, no template written out again for every word. The blocks
run on the tokens of the tree side by side; only in attention each text gathers its own path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

_STEP = 4  # texts whose lengths differ by less are padded to the longest of them


class Rows(NamedTuple):
    """Texts of similar length: which tokens they ask for, and which they look at.

    The `queries` of a text are the tokens that no text before it has, its `keys` are all tokens
    from the start. Both are padded; `mask` says which key a query sees.
    """

    queries: Tensor  # (R, q), tokens
    keys: Tensor  # (R, k), tokens
    mask: Tensor  # (R, 1, q, k)


@dataclass(frozen=True, eq=False)
class TextTree:
    """N tokens and how B texts run through them."""

    tokens: Tensor  # (N,), ids
    positions: Tensor  # (N,), places in the text
    ends: Tensor  # (B,), end token of each text
    rows: tuple[Rows, ...]
    sources: Tensor  # (N,), where each token stands among all queries

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, others: Sequence[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Attention of the tokens (1, heads, N, d) to their path and to `others`: (1, N, w)."""
        q, k, v = (y[0].transpose(0, 1) for y in (q, k, v))
        outputs = []
        for rows in self.rows:
            places = (rows.queries, rows.keys, rows.keys)
            mine = [_at(y, i).transpose(1, 2) for y, i in zip((q, k, v), places, strict=True)]
            outputs.append(attend(mine[0], mine[1], mine[2], others, rows.mask).flatten(0, 1))
        return _at(torch.cat(outputs), self.sources)[None]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    others: Sequence[tuple[Tensor, Tensor]] = (),
    mask: Tensor | None = None,
) -> Tensor:
    """Attention (B, heads, n, d) with the heads side by side in the result, (B, n, w).

    `others` are keys and values that everyone sees, for each sample or (1, heads, P, d) for all.
    """
    for keys, values in others:
        k, v = (
            torch.cat([y.to(own.dtype).expand(len(q), -1, -1, -1), own], 2)
            for y, own in ((keys, k), (values, v))
        )
    if mask is not None:
        mask = F.pad(mask, (k.shape[2] - mask.shape[-1], 0), value=True)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


def text_tree(tokens: Tensor, *, context: int = 0) -> TextTree:
    """The tree of tokenised texts (B, n), which end at their highest id.

    It can leave room for so many `context` vectors after the start token, which all texts share.
    """
    if context:
        room = tokens.new_zeros(len(tokens), context)
        tokens = torch.cat([tokens[:, :1], room, tokens[:, 1:]], 1)
    children: dict[tuple[int, int], int] = {}
    ids: list[int] = []
    positions: list[int] = []
    ends: list[int] = []
    buckets: dict[tuple[int, int], list[tuple[list[int], int]]] = {}
    for text, end in zip(tokens.tolist(), tokens.argmax(-1).tolist(), strict=True):
        node, path, known = -1, [], len(ids)
        for position, token in enumerate(text[: end + 1]):
            node = children.setdefault((node, token), len(ids))
            if node == len(ids):
                ids.append(token)
                positions.append(position)
            path.append(node)
        ends.append(node)
        if new := len(ids) - known:
            # Texts of almost the same length together: little padding, few calls.
            buckets.setdefault((new // _STEP, len(path) // _STEP), []).append((path, new))
    depth = torch.tensor(positions)
    rows = [_rows(paths, depth) for _, paths in sorted(buckets.items())]
    order = torch.cat([row.queries.flatten() for row in rows])
    # Padding repeats a text's last token: any place of a token among the queries will do.
    sources = torch.zeros_like(depth).scatter_(0, order, torch.arange(len(order)))
    device = tokens.device
    return TextTree(
        torch.tensor(ids, device=device),
        depth.to(device),
        torch.tensor(ends, device=device),
        tuple(Rows(*(part.to(device) for part in row)) for row in rows),
        sources.to(device),
    )


def _rows(paths: list[tuple[list[int], int]], depth: Tensor) -> Rows:
    queries = _padded([path[-new:] for path, new in paths])
    keys = _padded([path for path, _ in paths])
    mask = torch.arange(keys.shape[1]) <= depth[queries][..., None]
    return Rows(queries, keys, mask[:, None])


def _at(y: Tensor, places: Tensor) -> Tensor:
    """y[places]; unlike indexing, index_select is as fast backwards."""
    return y.index_select(0, places.flatten()).unflatten(0, places.shape)


def _padded(lists: list[list[int]]) -> Tensor:
    length = max(map(len, lists))
    return torch.tensor([each + [each[-1]] * (length - len(each)) for each in lists])
