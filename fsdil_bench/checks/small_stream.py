"""A small part of a stream: a few classes, domains and images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fsdil_bench.data.scenario import Samples, Stream

_SYNONYMS = 3  # per class: texts cost more than images in a world this small


@dataclass(frozen=True)
class WorldSize:
    """How much of a scenario is used; `altered`: with other base images, and wrong labels."""

    classes: int = 3
    domains: int = 3
    base: int = 5  # images per class
    shots: int = 2
    altered: bool = False


def small_stream(stream: Stream, size: WorldSize, tests: int) -> Stream:
    """A few classes, domains (from the first to the last) and images of a stream."""
    places = np.linspace(0, len(stream.domains) - 1, size.domains).round().astype(int)
    domains = []
    for t, place in enumerate(places):
        domain = stream.domains[place]
        skipped = size.base if size.altered and t == 0 else 0
        train = _first(domain.train, size.classes, size.shots if t else size.base, skipped)
        if size.altered:
            wrong = (train.labels + 1) % size.classes
            train = Samples(train.ids, wrong, train.load, train.keys)
        domains.append(replace(domain, train=train, test=_first(domain.test, size.classes, tests)))
    names = stream.class_names[: size.classes]
    synonyms = tuple(words[:_SYNONYMS] for words in stream.synonyms[: size.classes])
    return replace(stream, class_names=names, synonyms=synonyms, domains=tuple(domains), unseen=())


def _first(samples: Samples, classes: int, count: int, skipped: int = 0) -> Samples:
    """Some images of each of the first classes."""
    members = [
        np.flatnonzero(samples.labels == c)[skipped : skipped + count] for c in range(classes)
    ]
    return samples.subset(np.concatenate(members).tolist())
