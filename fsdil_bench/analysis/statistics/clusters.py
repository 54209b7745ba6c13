"""Test images in groups: what is drawn independently is a group, not an image.

Frames of one video are right or wrong together. So contributions are summed within each group of a
domain, and the spread between these sums says how far another test set could be off. Without
groups every image is its own group, and this is the ordinary variance of a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: With fewer groups in a domain, intervals rest on little.
FEW_GROUPS = 10


@dataclass(frozen=True, eq=False)
class Clusters:
    """The groups of the test images, domain by domain.

    `images` and `groups` are the numbers of images and groups per domain. `order` sorts images so
    that a group's images are side by side (None where every image is its own group), and `starts`
    are the places where groups begin.
    """

    images: np.ndarray
    groups: np.ndarray
    order: np.ndarray | None
    starts: np.ndarray

    @classmethod
    def of(cls, counts: Sequence[int], groups: np.ndarray | None = None) -> Clusters:
        """Domains with `counts` images each, whose groups are numbered in `groups`."""
        images = np.asarray(counts)
        if groups is None:
            return cls(images, images, None, np.arange(images.sum()))
        domains = np.repeat(np.arange(len(images)), images)
        order = np.lexsort((groups, domains))
        new = np.diff(groups[order], prepend=-1) != 0
        new |= np.diff(domains[order], prepend=-1) != 0
        starts = np.flatnonzero(new)
        number = np.bincount(domains[order][starts], minlength=len(images))
        return cls(images, number, order, starts)

    @property
    def given(self) -> bool:
        """Whether there are groups of several images."""
        return self.order is not None

    @cached_property
    def freedom(self) -> np.ndarray:
        """The degrees of freedom of the variance in each domain.

        Groups of one size have their number less one. A few large groups among small ones decide
        the variance alone, so they count for fewer.
        """
        size = np.diff(self.starts, append=self.images.sum()).astype(float)
        squares, fourths = (self.by_domain(size**power) for power in (2, 4))
        freedom: np.ndarray = np.maximum(squares**2 / fourths - 1, 1)
        return freedom

    def means(self, values: np.ndarray) -> np.ndarray:
        """The mean over the images of each domain (the last axis)."""
        starts = np.concatenate([[0], np.cumsum(self.images)[:-1]])
        sums: np.ndarray = np.add.reduceat(values, starts, axis=-1)
        return sums / self.images

    def deviations(self, values: np.ndarray) -> np.ndarray:
        """What each group adds to the sum of domain means beyond its expectation.

        The sum of squares over groups estimates the variance of the sum of domain means.
        """
        rest = values - np.repeat(self.means(values), self.images, axis=-1)
        if self.order is not None:
            rest = np.add.reduceat(rest[..., self.order], self.starts, axis=-1)
        correction = np.sqrt(self.groups / np.maximum(self.groups - 1, 1)) / self.images
        deviations: np.ndarray = rest * np.repeat(correction, self.groups)
        return deviations

    def by_domain(self, values: np.ndarray) -> np.ndarray:
        """The sum over the groups of each domain (the last axis)."""
        starts = np.concatenate([[0], np.cumsum(self.groups)[:-1]])
        sums: np.ndarray = np.add.reduceat(values, starts, axis=-1)
        return sums
