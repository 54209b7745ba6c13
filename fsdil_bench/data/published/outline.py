"""The sizes of a published data set, as a stream without images.

A forecast asks how many images there are and what the classes are called. Both are known where the
images themselves are not on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fsdil_bench.data.scenario import Domain, Samples, ScenarioRequest, Stream
from fsdil_bench.data.stream_request import StreamRequest
from fsdil_bench.data.streams import open_stream
from fsdil_bench.errors import DataError
from fsdil_bench.plugins.descriptors import ScenarioInfo, load_factory
from fsdil_bench.plugins.registry import Registry


@dataclass(frozen=True)
class Outline:
    """What is published about a data set.

    `images` are the numbers of training and test images of every domain, in the usual order;
    `unseen` those of test sets that belong to no domain.
    """

    class_names: tuple[str, ...]
    images: Mapping[str, tuple[int, int]]
    synonyms: tuple[tuple[str, ...], ...] = ()
    transform: str = "clip"
    unseen: Mapping[str, int] = field(default_factory=dict)

    def stream(self, name: str) -> Stream:
        """A stream of these sizes, with equally many images of every class and none to load."""
        classes = len(self.class_names)
        return Stream(
            name,
            self.class_names,
            tuple(
                Domain(
                    domain,
                    made_up_samples(f"{domain}/train", train, classes),
                    made_up_samples(f"{domain}/test", test, classes),
                )
                for domain, (train, test) in self.images.items()
            ),
            synonyms=self.synonyms,
            transform=self.transform,
            unseen=tuple(
                (title, made_up_samples(f"unseen/{title}", images, classes))
                for title, images in self.unseen.items()
            ),
        )


def made_up_samples(place: str, images: int, classes: int) -> Samples:
    """Samples that can be counted, and not loaded; the classes take turns."""
    ids = tuple(f"{place}/{i:07d}" for i in range(images))
    return Samples(ids, np.arange(images) % classes, _nothing, keys=ids)


def _nothing(sample_id: str) -> np.ndarray:
    raise DataError(f"{sample_id} is made up: there is no such image")


def outlined_stream(request: StreamRequest, registry: Registry) -> Stream:
    """The stream that a request asks for, made of published sizes instead of images."""
    info = registry.scenario(request.scenario.dataset)
    source = load_factory(info.source, f"scenario '{info.name}'") if info.source else None
    if source is None or source.outline is None:
        raise DataError(
            f"scenario '{info.name}' does not say how many images it has",
            "Name its images with --data.",
        )
    outline = load_factory(source.outline, f"scenario '{info.name}'")

    def build(info: ScenarioInfo, asked: ScenarioRequest) -> Stream:
        made: Stream = outline(asked).stream(info.name)
        return made

    return open_stream(replace(request, data=None), registry, build, on_disk=False)
