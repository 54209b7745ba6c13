"""The variant `@validation` of every scenario that brings none: a stream to choose options on.

It is made of the training images of the base domain alone, so that neither test images nor later
domains take part in a choice. Of the images of a class

    60 %   are the base domain
    20 %   are what the K shots of a second domain are drawn from
    20 %   are the validation images, half of them for each of the two domains

The split depends on the data set only: every method, seed and number of shots has the same. Both
domains look alike. So it shows how well a method learns from many images and from few, not how well
it bears a change of domain: that would take images which nobody may look at before the stream.
"""

from __future__ import annotations

from dataclasses import replace

from fsdil_bench.plugins.descriptors import VALIDATION

from .scenario import Domain, Samples, Stream
from .shots import drawn_order

# Where the parts of a class end: base, shots, validation of the one and of the other domain.
_ENDS = (0.6, 0.8, 0.9, 1.0)


def validation_stream(stream: Stream) -> Stream:
    """Two domains made of what the first domain of `stream` has for training."""
    base = stream.domains[0]
    train, shots, one, other = _split(base.train, stream.name)
    domains = (Domain(base.name, train, one), Domain(f"{base.name}-shots", shots, other))
    return replace(stream, domains=domains, unseen=())


def _split(samples: Samples, place: str) -> list[Samples]:
    """The samples in parts, with the same share of every class in each."""
    parts: list[list[int]] = [[] for _ in _ENDS]
    for members in drawn_order(samples, 0, VALIDATION, place):
        ends = [round(end * len(members)) for end in _ENDS]
        for part, start, end in zip(parts, [0, *ends[:-1]], ends, strict=True):
            part += members[start:end].tolist()
    return [samples.subset(part) for part in parts]
