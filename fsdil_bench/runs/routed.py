"""Test images of a router, put together again by the domain they were sent to.

Every test batch is a mixture of domains, and a method handles each domain of it by itself: with
many domains its tower would only ever see a few images at a time. So routed images wait until there
is a full batch of one domain. A method is told nothing new by that: it has routed them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch

from .views import Batch

_MOST_WAITING = 1024  # images (600 MB at 224 pixels); above it, the largest group goes first

#: Rows of the test set and the images at these.
Part = tuple[np.ndarray, Batch]


def by_domain(routed: Iterable[tuple[np.ndarray, Batch, np.ndarray]], full: int) -> Iterator[Part]:
    """The same images in parts of one domain each: of `full` images, or of what is left.

    `routed` are rows, images and the domain of each.
    """
    waiting: dict[int, Part] = {}
    for rows, batch, domains in routed:
        for domain in np.unique(domains).tolist():
            here = np.flatnonzero(domains == domain)
            new = rows[here], _at(batch, here)
            known = waiting.pop(domain, None)
            group = _joined(known, new) if known else new
            *complete, rest = _split(group, full)
            yield from complete
            if len(rest[0]):
                waiting[domain] = rest
        while sum(len(rows) for rows, _ in waiting.values()) > _MOST_WAITING:
            yield waiting.pop(max(waiting, key=lambda domain: len(waiting[domain][0])))
    for domain in sorted(waiting):
        yield waiting[domain]


def misrouted(
    done: Iterable[Part], routed: np.ndarray, truth: np.ndarray
) -> Iterator[tuple[np.ndarray, Batch, np.ndarray]]:
    """Of parts that were sent to the domains `routed`, the images that are from others: rows,
    images and the true domain of each."""
    for rows, batch in done:
        wrong = np.flatnonzero(routed[rows] != truth[rows])
        if len(wrong):
            yield rows[wrong], _at(batch, wrong), truth[rows[wrong]]


def _split(group: Part, size: int) -> Iterator[Part]:
    """Parts of `size` images, and in the end what is left, if only none."""
    rows, batch = group
    for start in range(0, len(rows) + 1, size):
        places = np.arange(start, min(start + size, len(rows)))
        yield rows[places], _at(batch, places)


def _at(batch: Batch, places: np.ndarray) -> Batch:
    return batch.select(torch.from_numpy(places).to(batch._held.device))


def _joined(one: Part, other: Part) -> Part:
    tensors = (
        None if a is None or b is None else torch.cat([a, b])
        for a, b in (
            (one[1]._images, other[1]._images),
            (one[1]._features, other[1]._features),
            (one[1].shared, other[1].shared),
        )
    )
    return np.concatenate([one[0], other[0]]), Batch(*tensors)
