"""Streams as Avalanche benchmarks (extra `avalanche`).

    from fsdil_bench.avalanche import benchmark
    scenario = benchmark("drawn-1shot", size=48)      # an avalanche CLScenario

Every domain is an experience with the same classes and task label 0, as domain-incremental
learning wants it. Avalanche takes seconds to import, so it is only imported in functions, here and
in the modules that make methods of its strategies (`methods`, `memory`).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from fsdil_bench.data.content_keys import load_picture
from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.data.streams import load_stream
from fsdil_bench.data.transforms import ImageSpec, Transform, build_transform
from fsdil_bench.errors import RequestError
from fsdil_bench.runs.decoded_pictures import load_shrunk
from fsdil_bench.seeds import derive

if TYPE_CHECKING:
    from avalanche.benchmarks import CLScenario


def benchmark(scenario: str, *, seed: int = 0, size: int = 224, **options: Any) -> CLScenario:
    """A scenario such as `drawn-1shot` under a seed, as an Avalanche benchmark.

    `options` are those of `fsdil_bench.data.streams.load_stream`, for instance `data=`.
    """
    return to_avalanche(load_stream(scenario, seed=seed, **options), seed=seed, size=size)


def to_avalanche(stream: Stream, *, seed: int = 0, size: int = 224) -> CLScenario:
    """A stream whose shots are drawn, with augmented training and plain test images."""
    transform = build_transform(stream.transform, ImageSpec(size))
    train, test = [], []
    for t, domain in enumerate(stream.domains):
        learned = _Images(domain.train, transform, augment_seed=derive(seed, "avalanche", t))
        train.append(task_aware(learned))
        test.append(task_aware(_Images(domain.test, transform)))

    from avalanche.benchmarks import benchmark_from_datasets

    return benchmark_from_datasets(train=train, test=test)


def task_aware(images: torch.utils.data.Dataset[Any]) -> Any:
    """Images with `targets` as an Avalanche data set that gives each of them the task label 0."""
    require_avalanche()
    # Private, and the only way in Avalanche 0.6 to set the task labels that several strategies
    # (LwF, DER) read.
    from avalanche.benchmarks.utils.classification_dataset import (
        _make_taskaware_classification_dataset,
    )

    return _make_taskaware_classification_dataset(images, task_labels=0)


def require_avalanche() -> None:
    """Import Avalanche, or say how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about libraries that it could use and does not find
            import avalanche  # noqa: F401
    except ImportError as error:
        raise RequestError(
            f"Avalanche cannot be imported: {error}",
            "Install it: pip install 'fsdil-bench[avalanche]'",
        ) from error


class _Images(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """Samples as a torch data set of (normalised image, label); Avalanche reads `targets`."""

    def __init__(
        self, samples: Samples, transform: Transform, augment_seed: int | None = None
    ) -> None:
        self.samples = samples
        self.transform = transform
        self.augment_seed = augment_seed
        self.targets = [int(label) for label in samples.labels]
        self._draws = 0

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        sample_id = self.samples.ids[index]
        if self.augment_seed is None:
            view = self.transform.plain(load_picture(self.samples.load, sample_id))
        else:
            self._draws += 1
            picture = load_shrunk(self.samples, sample_id, self.transform)
            view = self.transform.augmented(picture, derive(self.augment_seed, index, self._draws))
        pixels = self.transform.normalise(view.unsqueeze(0), torch.device("cpu"))
        return pixels.squeeze(0), self.targets[index]
