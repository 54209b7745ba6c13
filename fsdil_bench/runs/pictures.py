"""The images of a stream as a backbone takes them: plain views, augmented views, frozen features.

Views are made in background threads a few batches before they are asked for. What they are made
of is in `decoded_pictures`, what stays in memory in `picture_memory`, the cached features are in
`features`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.data.transforms import Transform
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.progress import Progress
from fsdil_bench.system.prefetch import default_workers, ordered_map

from .cost import Meter
from .decoded_pictures import GROUP, DecodedPictures
from .features import FrozenFeatures
from .picture_memory import PictureMemory

_AHEAD = 32  # groups made ahead: a few training batches, one test batch

#: A batch to make: positions in the samples and, for augmented views, a seed for each.
Draw = tuple[Sequence[int] | np.ndarray, Sequence[int] | None]

_Group = tuple[Samples, Sequence[int] | None, bool]


class Pictures:
    """All views of the samples of one stream, for one backbone.

    `workers` is the number of threads that make views (0: none, everything is done when asked
    for); it changes no view.
    """

    def __init__(
        self,
        stream: Stream,
        backbone: Backbone,
        transform: Transform,
        cache: Path,
        progress: Progress,
        meter: Meter | None = None,
        workers: int | None = None,
    ) -> None:
        self.backbone = backbone
        self.meter = meter or Meter(backbone.device)
        self.transform = transform
        self.workers = default_workers() if workers is None else workers
        few_shot = {key for domain in stream.domains[1:] for key in domain.train.keys}
        self._memory = PictureMemory(few_shot)
        kept = cache / f"pictures-{stream.name}.sqlite" if stream.keep_images else None
        self._decoded = DecodedPictures(transform, self._memory, kept)
        self._features = FrozenFeatures(self, cache, progress)

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen unit embeddings of the plain views, (n, d), on the CPU."""
        with self.meter.phase("features"):
            return self._features.of(samples)

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views, uint8 (n, 3, size, size)."""
        [views] = self.batches(samples, [(range(len(samples)), None)])
        return views

    def augmented(self, samples: Samples, seeds: Sequence[int]) -> torch.Tensor:
        """One random view of each sample, uint8 (n, 3, size, size)."""
        [views] = self.batches(samples, [(range(len(samples)), seeds)])
        return views

    def batches(
        self, samples: Samples, draws: Iterable[Draw], ahead: int = _AHEAD
    ) -> Iterator[torch.Tensor]:
        """Views, uint8 (n, 3, size, size), batch by batch; the next ones are made meanwhile.

        They lie in pinned memory if the run's device is a GPU, so that copying them there does
        not keep the CPU waiting. `ahead` groups of views are made before they are asked for.
        """
        groups = _grouped(samples, draws)
        with closing(ordered_map(self._make, groups, self.workers, ahead)) as made:
            while (views := self._next_batch(made)) is not None:
                yield views

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the run's device, without waiting for the copy."""
        return to_device(tensor, self.backbone.device)

    def forget(self, samples: Samples) -> None:
        """Free the memory of images that will not be used again."""
        self._memory.forget(samples.keys)

    def close(self) -> None:
        """Release the caches."""
        self._features.store.close()
        self._decoded.close()

    def _next_batch(self, made: Iterator[tuple[list[Any], bool]]) -> torch.Tensor | None:
        """Put groups together up to the end of a batch; None when there are no more."""
        views: list[Any] = []
        with self.meter.phase("images"):
            for group, last in made:
                views += group
                if last:
                    return _pinned(_stacked(views), self.backbone.device)
        return None

    def _make(self, group: _Group) -> tuple[list[Any], bool]:
        """The views of a group, and whether a batch ends with it; runs in any thread."""
        samples, seeds, last = group
        if seeds is None:
            return self._decoded.plain_views(samples), last
        pairs = zip(self._decoded.shrunk(samples), seeds, strict=True)
        return [self.transform.augmented(picture, seed) for picture, seed in pairs], last


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor on the device, without waiting for the copy."""
    return _pinned(tensor, device).to(device, non_blocking=True)


def _pinned(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.pin_memory() if device.type == "cuda" else tensor


def _grouped(samples: Samples, draws: Iterable[Draw]) -> Iterator[_Group]:
    """Every batch in groups that one thread makes; the last of a batch says so."""
    for positions, seeds in draws:
        for start in range(0, len(positions), GROUP):
            part = slice(start, start + GROUP)
            chosen = samples.subset(positions[part])
            last = start + GROUP >= len(positions)
            yield chosen, None if seeds is None else seeds[part], last


def _stacked(views: list[Any]) -> torch.Tensor:
    # NumPy and torch choose other strides in places, on which the last bits of a convolution may
    # depend: plain views (arrays) and augmented ones (tensors) each keep to their own.
    return torch.stack(views) if torch.is_tensor(views[0]) else torch.from_numpy(np.stack(views))
