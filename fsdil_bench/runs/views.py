"""What a method is shown: the training images of the current domain, and test images without
labels, domains or order.

A `TrainDomain` is open while the method learns it and closed afterwards: nothing of an earlier
domain can be read again. The one that a method gets holds no sample ids (`runs.served_views`). A
test `Batch` holds tensors only, so nothing leads from it to a label. All tensors that are handed
out are copies: a method may write into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import tee
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples
from fsdil_bench.errors import PluginError
from fsdil_bench.progress import Progress
from fsdil_bench.seeds import derive, numpy_generator

from .ledger import Ledger

if TYPE_CHECKING:
    from fsdil_bench.data.transforms import Transform
    from fsdil_bench.models.backbone import Backbone

    from .cost import Meter
    from .pictures import Draw


_MOST_BYTES = 4 << 30  # that `TrainDomain.images` may take: 7,000 images of 224 x 224


class ViewSource(Protocol):
    """Where the views of a domain come from: `Pictures`, or what stands for it in a sealed run."""

    backbone: Backbone
    transform: Transform
    meter: Meter

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen embeddings of the plain views."""

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views of all samples."""

    def batches(self, samples: Samples, draws: Iterable[Draw]) -> Iterator[torch.Tensor]:
        """Views, batch by batch."""

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the run's device."""


@dataclass(frozen=True)
class TrainBatch:
    """A step's worth of training images on the run's device.

    `positions` tell which images of the domain these are.
    """

    images: torch.Tensor
    labels: torch.Tensor
    positions: torch.Tensor


class TrainDomain:
    """The training images of one domain, for as long as the method learns it.

    `seed` is the run's seed and the number of the domain being learned; the `ledger` notes what is
    handed out.
    """

    def __init__(
        self,
        index: int,
        samples: Samples,
        class_names: tuple[str, ...],
        pictures: ViewSource,
        seed: tuple[int, int],
        progress: Progress,
        earlier: tuple[TrainDomain, ...] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.index = index
        self.class_names = class_names
        self._samples = samples
        self._pictures = pictures
        self._seed = seed
        self._progress = progress
        self._earlier = earlier
        self._ledger = ledger or Ledger()
        self._passes = 0
        self._length = len(samples)

    def __len__(self) -> int:
        return self._length

    @property
    def labels(self) -> torch.Tensor:
        """Class ids of all images, (n,), on the run's device."""
        samples = self._open_samples()
        return torch.tensor(samples.labels, device=self._pictures.backbone.device)

    @property
    def earlier(self) -> tuple[TrainDomain, ...]:
        """The domains before this one: only for methods that declare `exemplar_free=False`."""
        if self._earlier is None:
            raise PluginError(
                "an exemplar-free method asked for the images of earlier domains",
                "Declare exemplar_free=False in its MethodInfo; boards then label it so.",
            )
        return self._earlier

    def features(self) -> torch.Tensor:
        """Frozen unit embeddings of the plain views, (n, d), from the cache where possible."""
        samples = self._open_samples()
        device = self._pictures.backbone.device
        self._ledger.note(self.index, samples.labels)
        return self._pictures.features(samples).to(device)

    def images(self) -> torch.Tensor:
        """The plain views of all images, normalised: for few-shot domains."""
        samples = self._open_samples()
        needed = len(samples) * 3 * self._pictures.transform.spec.size**2 * 4
        if needed > _MOST_BYTES:
            raise PluginError(
                f"domain.images() of domain {self.index + 1} would hold {len(samples):,} images at "
                f"once, {needed / 2**30:.1f} GiB; {_MOST_BYTES / 2**30:.0f} are allowed",
                "Go over them with domain.batches(size, augment=False, shuffle=False), or use "
                "domain.features().",
            )
        self._ledger.note(self.index, samples.labels)
        return self._normalised(self._pictures.plain(samples))

    def take(self, positions: Sequence[int], *, draw: int | None = None) -> TrainBatch:
        """The images at `positions`, for data loaders of other libraries: plain views, or
        augmented ones that depend on the number `draw`."""
        samples = self._open_samples()
        seed = (*self._seed, "take", self.index, draw)
        seeds = None if draw is None else [derive(*seed, int(p)) for p in positions]
        [views] = self._pictures.batches(samples, [(positions, seeds)])
        return self._batch(np.asarray(positions), views)

    @contextmanager
    def training(self, steps: int) -> Iterator[Callable[[], None]]:
        """Show how far a training loop is; it gets a function to call after every step."""
        with self._progress.phase(f"domain {self.index + 1}: training", steps):
            yield self._progress.advance

    def batches(
        self,
        batch_size: int,
        *,
        epochs: int = 1,
        steps: int | None = None,
        augment: bool = True,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> Iterator[TrainBatch]:
        """Go over the images `epochs` times, or for exactly `steps` batches if given.

        Order and augmentation are seeded by the run, the domain and the number of this call.
        `drop_last` is ignored where it would leave no batch at all.
        """
        samples = self._open_samples()
        call, self._passes = self._passes, self._passes + 1
        batch_size = min(batch_size, len(samples))
        per_epoch = len(samples) // batch_size if drop_last else -(-len(samples) // batch_size)
        total = steps if steps is not None else epochs * per_epoch

        def draws() -> Iterator[Draw]:
            for step in range(total):
                epoch, place = divmod(step, per_epoch)
                if place == 0:
                    order = numpy_generator(*self._seed, "order", self.index, call, epoch)
                    permuted = (
                        order.permutation(len(samples)) if shuffle else np.arange(len(samples))
                    )
                positions = permuted[place * batch_size : (place + 1) * batch_size]
                seed = (*self._seed, "augment", self.index, call, epoch)
                yield positions, [derive(*seed, int(p)) for p in positions] if augment else None

        now, ahead = tee(draws())  # views are made some batches before they are handed out
        views = self._pictures.batches(samples, ahead)
        with self.training(total) as advance:
            for (positions, _), pixels in zip(now, views, strict=True):
                yield self._batch(np.asarray(positions), pixels)
                advance()

    def close(self) -> None:
        """End access, also to `earlier` domains: called by the harness when the domain is over.

        What led to images is dropped, so that no flag opens the view again.
        """
        for domain in self._earlier or ():
            domain.close()
        for name in ("_samples", "_pictures"):
            vars(self).pop(name, None)

    def _batch(self, positions: np.ndarray, views: torch.Tensor) -> TrainBatch:
        samples = self._open_samples()
        labels = samples.labels[positions]
        self._ledger.note(self.index, samples.labels, positions)
        self._pictures.meter.count("learn", len(positions))
        return TrainBatch(
            self._normalised(views),
            self._pictures.to_device(torch.from_numpy(labels)),
            torch.tensor(positions),
        )

    def _normalised(self, views: torch.Tensor) -> torch.Tensor:
        return self._pictures.transform.normalise(views, self._pictures.backbone.device)

    def _open_samples(self) -> Samples:
        if "_samples" not in vars(self):
            raise PluginError(
                f"the method read images of domain {self.index + 1} after that domain was over",
                "Old images may not be used; keep what you need of them (not the images) as state.",
            )
        return self._samples


class Batch:
    """Test images in a random mixture of the seen domains: what the method declared to need."""

    def __init__(
        self,
        images: torch.Tensor | None = None,
        features: torch.Tensor | None = None,
        shared: torch.Tensor | None = None,
    ) -> None:
        self._images = images
        self._features = features
        self.shared = shared
        """What `RouterMethod.shared_part` returned for these images, which then are not here."""

    @property
    def images(self) -> torch.Tensor:
        """Normalised images, (n, 3, size, size)."""
        return self._declared("images", self._images)

    @property
    def features(self) -> torch.Tensor:
        """Frozen unit embeddings, (n, d)."""
        return self._declared("features", self._features)

    def select(self, rows: torch.Tensor) -> Batch:
        """The part of the batch at `rows` (a boolean mask or indices)."""
        return Batch(
            None if self._images is None else self._images[rows],
            None if self._features is None else self._features[rows],
            None if self.shared is None else self.shared[rows],
        )

    def __len__(self) -> int:
        return len(self._held)

    @property
    def _held(self) -> torch.Tensor:
        """One of the tensors."""
        found = self._images if self._images is not None else self.shared
        return self.features if found is None else found

    def _declared(self, name: str, tensor: torch.Tensor | None) -> torch.Tensor:
        if tensor is None:
            raise PluginError(
                f"the method uses batch.{name} without declaring it",
                f'Put "{name}" into the `inputs` of the method class.',
            )
        return tensor
