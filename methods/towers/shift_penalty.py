"""A penalty that keeps the way of the adapters orthogonal to the ways of earlier domains.

ICON (Park et al., ECCV 2024), cluster-based adaptation shift: domain s has moved the adapters by
the shift o_s, and the current domain has moved them by delta so far. The earlier shifts fall into k
clusters. Those in the cluster nearest to delta are of a like kind and may be followed; of the rest

    penalty = | sum over o of w_o <delta, o> |,      w_o = |delta - o| / sum of these,

or with cosines instead of products. There is none before more than k shifts exist.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..prompts.kmeans_router import kmeans

_CLUSTERS = 2


class ShiftClusters(NamedTuple):
    """Earlier shifts (s, d), the centres of their clusters (k, d), and the cluster of each (s,)."""

    shifts: torch.Tensor
    centres: torch.Tensor
    members: torch.Tensor


def shift_clusters(
    shifts: list[torch.Tensor], generator: torch.Generator, clusters: int = _CLUSTERS
) -> ShiftClusters | None:
    """The clusters of earlier shifts; None if there are no more than `clusters`."""
    if len(shifts) <= clusters:
        return None
    stacked = torch.stack(shifts)
    centres = kmeans(stacked, clusters, generator)
    return ShiftClusters(stacked, centres, torch.cdist(stacked, centres).argmin(1))


def shift_penalty(
    delta: torch.Tensor, known: ShiftClusters | None, *, cosine: bool = False
) -> torch.Tensor:
    """The penalty on a shift (d,)."""
    if known is None:
        return delta.new_zeros(())
    own = torch.cdist(delta.detach()[None], known.centres).argmin()
    others = known.shifts[known.members != own]
    if not len(others):
        return delta.new_zeros(())
    far = (delta.detach() - others).norm(dim=1)
    weights = far / far.sum().clamp(min=1e-12)
    products = F.cosine_similarity(delta[None], others) if cosine else others @ delta
    return (weights @ products).abs()
