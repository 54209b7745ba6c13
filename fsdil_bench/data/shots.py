"""The K-shot draw: the base domain keeps all its images, every later domain K per class.

The draw of a class depends on the data set, the seed, the domain and the ids of the class's images,
never on the method, on K, on other classes or on what classes are called. So every method learns
from the same images, the 2-shot draw contains the 1-shot draw, and leaving a class out changes no
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fsdil_bench.seeds import numpy_generator

from .scenario import Samples, Stream


def draw_shots(stream: Stream, shots: int, seed: int, base_limit: int | None = None) -> Stream:
    """`stream` with `shots` training images per class in every domain but the first.

    `base_limit` optionally bounds the images per class of the base domain, drawn the same way.
    """
    domains = []
    for t, domain in enumerate(stream.domains):
        limit = shots if t else base_limit
        if limit is not None:
            purpose = ("shots", f"{stream.name}/{domain.name}")
            drawn = drawn_order(domain.train, seed, *purpose)
            chosen = [int(i) for members in drawn for i in members[:limit]]
            domain = replace(domain, train=domain.train.subset(chosen))
        domains.append(domain)
    return replace(stream, domains=tuple(domains))


def drawn_order(samples: Samples, seed: int, *purpose: object) -> Iterator[np.ndarray]:
    """The positions of each class' samples in an order drawn for this purpose, class by class."""
    ids = np.array(samples.ids)
    for label in np.unique(samples.labels):
        members = np.flatnonzero(samples.labels == label)
        # By id, so that the draw does not depend on the order in which a loader lists files.
        members = members[np.argsort(ids[members], kind="stable")]
        # Its first id stands for the class: its number depends on which other classes there are.
        draw = numpy_generator(seed, *purpose, ids[members[0]])
        yield members[draw.permutation(len(members))]
