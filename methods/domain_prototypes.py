"""Class prototypes over a stream of domains, for methods that were made for new classes.

Where every session brings new classes, a class gets its prototype once: the mean of its features.
In a stream of domains all classes come back in every domain, and there are three things to do with
the new means. With the features f and the prototypes p_tc of class c from domain t

    overwrite     p_c is that of the last domain: what the original code would do. Earlier domains
                  are forgotten at once
    running       p_c is the mean over all images so far: every image counts the same
    domain-max    every domain keeps its own: similarity to a class is max over t of cos(f, p_tc)

Prototypes are kept as sums of features, since a cosine does not depend on their length. A row of
zeros stands for a class without images, which has no similarity to anything.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

Mode = Literal["domain-max", "running", "overwrite"]
#: What options that choose a mode say.
MODES = "prototypes of every domain, means over all images so far, or those of the last domain"
_NONE = -1.0  # the cosine to a prototype that does not exist


def class_sums(features: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """The sum of the features of every class, (C, d)."""
    members = F.one_hot(labels, classes).double()
    return (members.T @ features.double()).float()


def remember(known: torch.Tensor, sums: torch.Tensor, mode: Mode) -> torch.Tensor:
    """Prototypes (1 or number of domains, C, d) after a domain with these sums."""
    if mode == "domain-max" or not len(known):
        return torch.cat([known, sums[None]])
    if mode == "running":
        return known + sums
    return torch.where(sums.any(-1, keepdim=True), sums, known[0])[None]


def similarity(features: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """The largest cosine to a prototype of each class, (n, C), in double precision.

    `known` are prototypes (T, C, d); the result differentiates with respect to both.
    """
    unit = F.normalize(known.double(), dim=-1)
    cosines = torch.einsum("nd,tcd->ntc", F.normalize(features.double(), dim=-1), unit)
    return cosines.masked_fill(~known.detach().any(-1), _NONE).amax(1)


def own_similarity(
    features: torch.Tensor, labels: torch.Tensor, own: torch.Tensor, earlier: torch.Tensor
) -> torch.Tensor:
    """What a domain trains its own rows (C, d) on, (n, C).

    Rows of `earlier` domains (T, C, d) stay as they are and count for wrong classes only: the right
    class has to be found by the domain's own row.
    """
    mine = similarity(features, own[None])
    if not len(earlier):
        return mine
    right = F.one_hot(labels, len(own)).bool()
    return torch.where(right, mine, torch.maximum(mine, similarity(features, earlier)))
