"""Recognising domains by K-means: every domain keeps a few centres of its frozen features.

S-Prompts, inference: with the unit features z of the frozen image tower and the centres m_tk of
domain t, an image is taken to be of the domain

    argmin_t min_k | z - m_tk |

in the L1 norm, as in the released code, or in the L2 norm. A domain of n images has at most n
centres. Where it has few, a centre can be the feature of one image: methods that use this declare
`keeps_features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

Norm = Literal["l1", "l2"]
_ITERATIONS = 100  # at most; far more than K-means needs to converge


def kmeans(z: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Centres (min(count, n), d) of the points z (n, d): Lloyd's algorithm from k-means++."""
    points = z.double()
    centres = _spread(points, min(count, len(points)), generator)
    for _ in range(_ITERATIONS):
        distances = torch.cdist(points, centres)
        members = torch.nn.functional.one_hot(distances.argmin(1), len(centres)).to(points)
        sizes = members.sum(0)[:, None]
        # A centre without members (there are equal points) stays where it is.
        moved = torch.where(sizes > 0, members.T @ points / sizes.clamp(min=1), centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres.to(z.dtype)


def route(z: torch.Tensor, centres: Sequence[torch.Tensor], norm: Norm = "l1") -> torch.Tensor:
    """The domain with the nearest centre for every query (n, d): indices into `centres`, (n,)."""
    power = 1.0 if norm == "l1" else 2.0
    nearest = [
        # Matrix products are faster, and depend on the other queries in the last bit.
        torch.cdist(z, own, p=power, compute_mode="donot_use_mm_for_euclid_dist").amin(1)
        for own in centres
    ]
    return torch.stack(nearest, 1).argmin(1)


def _spread(points: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Points to start from: one at random, then others with the square of their distance."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    while len(chosen) < count:
        nearest = torch.cdist(points, points[chosen]).amin(1).square()
        nearest[chosen] = 0
        if not nearest.any():  # all others are equal to chosen ones
            nearest = torch.ones_like(nearest)
            nearest[chosen] = 0
        chosen.append(int(torch.multinomial(nearest.cpu(), 1, generator=generator)))
    return points[chosen]
