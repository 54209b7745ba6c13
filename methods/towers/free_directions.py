"""Dual gradient projection memory: which directions of a layer's inputs are free for learning.

From Liang and Li, InfLoRA, CVPR 2024 (there called DualGPM). C = mean over tokens of x x' are the
inputs of a layer in one domain. Of the directions that inputs of earlier domains lie in, an
orthonormal basis M is kept. The part of C that a new domain may use is

    C - M M' C      while M spans what is taken
    M M' C          once more than half of all directions are taken: M then spans what is free

so that M never has more than half as many columns as there are directions. After a domain the
directions that explain most of its C are taken too, until the taken ones reach a share of

    |C|^2 = sum of the squared singular values of C.

These are fourth powers of the inputs' own singular values, so that a large share takes few
directions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

_NOISE = 1e-6  # of |C|: below it, directions are rounding errors of a basis in single precision


class Directions(NamedTuple):
    """Orthonormal columns (w, k), and whether they span the free directions or the taken ones."""

    basis: torch.Tensor
    are_free: bool


def all_free(width: int) -> Directions:
    """Nothing is taken yet."""
    return Directions(torch.zeros(width, 0, dtype=torch.float64), False)


def free_part(known: Directions, matrix: torch.Tensor) -> torch.Tensor:
    """A matrix (w, n) without what its columns have in taken directions."""
    inside = known.basis @ (known.basis.T @ matrix)
    return inside if known.are_free else matrix - inside


def strongest(known: Directions, moments: torch.Tensor, count: int) -> torch.Tensor:
    """Free directions in which inputs are largest, as rows (count, w); zeros where none is left."""
    left = torch.linalg.svd(free_part(known, moments)).U[:, :count]
    # Where C has fewer directions than asked for, the rest is arbitrary, and may not be free.
    return free_part(known, left).T


def take(known: Directions, moments: torch.Tensor, share: float) -> Directions:
    """The directions after a domain: enough are taken to explain this share of its C."""
    left, values, _ = torch.linalg.svd(free_part(known, moments))
    count = _needed(values.square(), float(moments.square().sum()), share)
    count = min(count, int((values > _NOISE * moments.norm()).sum()))
    width, size = known.basis.shape
    if known.are_free:
        rest = known.basis - left[:, :count] @ (left[:, :count].T @ known.basis)
        return Directions(torch.linalg.svd(rest).U[:, : size - count], True)
    grown = torch.linalg.qr(torch.cat([known.basis, left[:, :count]], 1), mode="complete").Q
    taken, free = grown.split([size + count, width - size - count], dim=1)
    return Directions(free, True) if 2 * (size + count) > width else Directions(taken, False)


def _needed(energy: torch.Tensor, total: float, share: float) -> int:
    """How many of the free directions, the strongest first, must be taken to reach the share."""
    left_over = float(energy.sum()) - torch.cat([energy.new_zeros(1), energy.cumsum(0)])
    return int((left_over > (1 - share) * total).sum())
