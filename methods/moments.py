"""Counts, sums and products of features: all that means and covariances need, and exactly additive.

With the features z of some images, class by class,

    n_c,  s_c = sum of z,  G = sum of z z'

    mu_c = s_c / n_c
    within-class covariance   (G - sum_c n_c mu_c mu_c') / (N - C)     C: classes that have images
    total covariance          (G - N mu mu') / (N - 1)

A class with one image says nothing about spread: where N = C the first is zero, and so is the
second where N = 1. Everything is in double precision.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F


class Moments(NamedTuple):
    """The sums of one sample, or of several that were merged."""

    counts: torch.Tensor  # (C,)
    sums: torch.Tensor  # (C, d)
    products: torch.Tensor  # (d, d)

    def size(self) -> int:
        """How many images."""
        return int(self.counts.sum())

    def freedom(self) -> int:
        """How many images more than classes that have one."""
        return self.size() - int((self.counts > 0).sum())


def moments(z: torch.Tensor, labels: torch.Tensor, classes: int) -> Moments:
    """Of features (n, d)."""
    rows = z.double()
    members = F.one_hot(labels, classes).double()
    return Moments(members.sum(0), members.T @ rows, rows.T @ rows)


def merged(one: Moments, other: Moments) -> Moments:
    """Of both samples together."""
    return Moments(*(a + b for a, b in zip(one, other, strict=True)))


def class_means(sums: Moments) -> torch.Tensor:
    """(C, d); zero for a class without images."""
    return sums.sums / sums.counts.clamp(min=1)[:, None]


def within_class(sums: Moments) -> torch.Tensor:
    """The covariance around the class means, (d, d)."""
    if not sums.freedom():
        return torch.zeros_like(sums.products)
    means = class_means(sums)
    return (sums.products - (sums.counts[:, None] * means).T @ means) / sums.freedom()


def total(sums: Moments) -> torch.Tensor:
    """The covariance around the mean of all images, (d, d)."""
    count = sums.size()
    if count < 2:
        return torch.zeros_like(sums.products)
    mean = sums.sums.sum(0) / count
    return (sums.products - count * torch.outer(mean, mean)) / (count - 1)
