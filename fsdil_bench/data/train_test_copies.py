"""Copies between training and test images: the same image, byte for byte, on both sides.

A test image that a method has been shown says little about what it has learned. Published data sets
have such images, too; they stay as they are published unless the user asks to drop them. Then the
copies for training go, in whichever domain they are, and the test sets stay the same for everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .scenario import Samples, Stream

#: The id of a test image, and that of the first training image with the same content.
Copy = tuple[str, str]

_SHOWN = 3  # examples in a message


def find_copies(stream: Stream) -> list[Copy]:
    """The test images, of whichever domain, whose content is among any domain's training images.

    Images are compared by `Samples.keys`: for that, all images of the stream are read once.
    """
    learned: dict[str, str] = {}
    for domain in stream.domains:
        for key, sample_id in zip(domain.train.keys, domain.train.ids, strict=True):
            learned.setdefault(key, sample_id)
    return [
        (sample_id, learned[key])
        for samples in _tests(stream)
        for key, sample_id in zip(samples.keys, samples.ids, strict=True)
        if key in learned
    ]


def drop_copies(stream: Stream) -> Stream:
    """The stream without the training images that are also tested; its notes say how many."""
    tested = {key for samples in _tests(stream) for key in samples.keys}
    domains = []
    for domain in stream.domains:
        stay = [i for i, key in enumerate(domain.train.keys) if key not in tested]
        domains.append(replace(domain, train=domain.train.subset(stay)))
    before, after = (sum(len(d.train) for d in each) for each in (stream.domains, domains))
    notes = {**stream.notes, "duplicates_dropped": before - after}
    return replace(stream, domains=tuple(domains), notes=notes)


def describe_copies(found: Sequence[Copy]) -> str:
    """One line: how many, and a few of them."""
    examples = ", ".join(f"{test} = {train}" for test, train in found[:_SHOWN])
    are = "1 test image is" if len(found) == 1 else f"{len(found)} test images are"
    more = " ..." if len(found) > _SHOWN else ""
    return f"{are} among the training images too, byte for byte: {examples}{more}"


def _tests(stream: Stream) -> Iterator[Samples]:
    yield from (domain.test for domain in stream.domains)
    yield from (samples for _, samples in stream.unseen)
