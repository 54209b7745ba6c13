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
    end_rows: tuple[Rows, ...]  # the same for the ends alone; a query is the number of a text
    end_sources: Tensor  # (B,)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, others: Sequence[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Attention of the tokens (1, heads, N, d) to their path and to `others`: (1, N, w)."""
        return _attend(self.rows, self.sources, (q, k, v), others)

    def attend_at_ends(
        self, q: Tensor, k: Tensor, v: Tensor, others: Sequence[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """The same for the ends alone: q is (1, heads, B, d), the result (1, B, w)."""
        return _attend(self.end_rows, self.end_sources, (q, k, v), others)


def _attend(
    all_rows: Sequence[Rows],
    sources: Tensor,
    qkv: tuple[Tensor, Tensor, Tensor],
    others: Sequence[tuple[Tensor, Tensor]],
) -> Tensor:
    q, k, v = (y[0].transpose(0, 1) for y in qkv)
    outputs = []
    for rows in all_rows:
        places = (rows.queries, rows.keys, rows.keys)
        mine = [_at(y, i).transpose(1, 2) for y, i in zip((q, k, v), places, strict=True)]
        outputs.append(attend(mine[0], mine[1], mine[2], others, rows.mask).flatten(0, 1))
    return _at(torch.cat(outputs), sources)[None]


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


def text_tree(tokens: Tensor, *, context: int = 0, device: torch.device | None = None) -> TextTree:
    """The tree of tokenised texts (B, n), which end at their highest id.

    It can leave room for so many `context` vectors after the start token, which all texts share.
    It is made on the `device`, or on that of the tokens.
    """
    if context:
        room = tokens.new_zeros(len(tokens), context)
        tokens = torch.cat([tokens[:, :1], room, tokens[:, 1:]], 1)
    children: dict[tuple[int, int], int] = {}
    ids: list[int] = []
    positions: list[int] = []
    ends: list[int] = []
    buckets: dict[tuple[int, int], list[tuple[list[int], int]]] = {}
    end_buckets: dict[int, list[tuple[int, list[int]]]] = {}
    for text, end in zip(tokens.tolist(), tokens.argmax(-1).tolist(), strict=True):
        node, path, known = -1, [], len(ids)
        for position, token in enumerate(text[: end + 1]):
            node = children.setdefault((node, token), len(ids))
            if node == len(ids):
                ids.append(token)
                positions.append(position)
            path.append(node)
        end_buckets.setdefault(len(path) // _STEP, []).append((len(ends), path))
        ends.append(node)
        if new := len(ids) - known:
            # Texts of almost the same length together: little padding, few calls.
            buckets.setdefault((new // _STEP, len(path) // _STEP), []).append((path, new))
    depth = torch.tensor(positions)
    rows = [_rows(paths, depth) for _, paths in sorted(buckets.items())]
    order = torch.cat([row.queries.flatten() for row in rows])
    # Padding repeats a text's last token: any place of a token among the queries will do.
    sources = torch.zeros_like(depth).scatter_(0, order, torch.arange(len(order)))
    end_rows = [_end_rows(paths) for _, paths in sorted(end_buckets.items())]
    end_order = torch.cat([row.queries.flatten() for row in end_rows])
    device = device or tokens.device

    def placed(parts: list[Rows]) -> tuple[Rows, ...]:
        return tuple(Rows(*(each.to(device) for each in part)) for part in parts)

    return TextTree(
        torch.tensor(ids, device=device),
        depth.to(device),
        torch.tensor(ends, device=device),
        placed(rows),
        sources.to(device),
        placed(end_rows),
        end_order.argsort().to(device),
    )


def _end_rows(paths: list[tuple[int, list[int]]]) -> Rows:
    """The rows of texts, given by number and path, whose end alone looks."""
    keys = _padded([path for _, path in paths])
    lengths = torch.tensor([len(path) for _, path in paths])
    mask = torch.arange(keys.shape[1]) < lengths[:, None]
    return Rows(torch.tensor([[text] for text, _ in paths]), keys, mask[:, None, None])


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
