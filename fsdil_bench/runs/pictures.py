"""Pictures, views and frozen features of samples, each computed once.

Views are made in background threads a few batches before they are asked for. Decoded pictures
(large ones as they are shrunk for augmentation) and plain views are kept in memory up to a limit,
part of which is kept free for few-shot domains, whose images are looked at most often; frozen
features (and, for streams that ask for it, decoded pictures) also on disk, keyed by the model's
weights, the transform and the picture's content, so that methods, seeds and shots share them.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import file_name_part
from fsdil_bench.data.content_keys import load_picture
from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.data.transforms import Transform
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.progress import Progress
from fsdil_bench.system.prefetch import default_workers, ordered_map

from .cost import Meter

_MEMORY_LIMIT = 2 << 30  # bytes of decoded pictures and plain views held in memory
_GROUP = 8  # images a thread makes at a time: spreads a small batch, and costs little per image
_AHEAD = 32  # groups made ahead: a few training batches, one test batch

#: A batch to make: positions in the samples and, for augmented views, a seed for each.
Draw = tuple[Sequence[int] | np.ndarray, Sequence[int] | None]

_Group = tuple[Samples, Sequence[int] | None, bool]


class Pictures:
    """All ways to look at the samples of one stream through one backbone.

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
        self._progress = progress
        self._few_shot = {key for domain in stream.domains[1:] for key in domain.train.keys}
        self._memory: dict[str, np.ndarray] = {}
        self._memory_bytes = 0
        self._lock = threading.Lock()  # of memory, never held while decoding
        tower, weights = backbone.image_tower
        key = f"{weights}/{backbone.code}/{transform.digest()}"
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._features = ArrayStore(cache / f"features-{file_name_part(tower)}-{name}.sqlite")
        kept = cache / f"pictures-{stream.name}.sqlite" if stream.keep_images else None
        self._pictures = ArrayStore(kept) if kept else None

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen unit embeddings of the plain views, (n, d), on the CPU."""
        with self.meter.phase("features"):
            known = self._features.get(samples.keys)
            missing = [i for i, key in enumerate(samples.keys) if key not in known]
            if missing:
                absent = samples.subset(missing)
                with self._progress.phase("frozen features", len(missing)):
                    embed = partial(self._embed, absent)
                    known |= self._features.fill(absent.keys, embed, self.backbone.batch_size)
            empty = np.zeros((0, self.backbone.embed_dim), np.float32)
            return torch.from_numpy(np.stack([known[k] for k in samples.keys]) if known else empty)

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
        return self._pinned(tensor).to(self.backbone.device, non_blocking=True)

    def forget(self, samples: Samples) -> None:
        """Free the memory that images hold which will not be looked at again."""
        with self._lock:
            for key in samples.keys:
                for name in (key, f"shrunk/{key}", f"plain/{key}"):
                    if name in self._memory:
                        self._memory_bytes -= self._memory.pop(name).nbytes

    def close(self) -> None:
        """Release the caches."""
        self._features.close()
        if self._pictures is not None:
            self._pictures.close()

    def _embed(
        self, samples: Samples, parts: Iterable[list[str]]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Embeddings by key, of one part of the samples' keys after the other."""
        position = {key: i for i, key in enumerate(samples.keys)}
        begun: deque[list[str]] = deque()

        def draws() -> Iterator[Draw]:
            for part in parts:
                begun.append(part)
                yield [position[key] for key in part], None

        # No more than two batches ahead: what is begun here, other processes wait for.
        ahead = 2 * self.backbone.batch_size // _GROUP
        for views in self.batches(samples, draws(), ahead):
            part = begun.popleft()
            pixels = self.transform.normalise(views, self.backbone.device)
            embeddings = self.backbone.frozen_features(pixels).cpu().numpy()
            self.meter.count("features", len(part))
            self._progress.advance(len(part))
            yield dict(zip(part, embeddings, strict=True))

    def _next_batch(self, made: Iterator[tuple[list[Any], bool]]) -> torch.Tensor | None:
        """Put groups together up to the end of a batch; None when there are no more."""
        views: list[Any] = []
        with self.meter.phase("images"):
            for group, last in made:
                views += group
                if last:
                    return self._pinned(_stacked(views))
        return None

    def _pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self.backbone.device.type == "cuda" else tensor

    def _make(self, group: _Group) -> tuple[list[Any], bool]:
        """The views of a group, and whether a batch ends with it; runs in any thread."""
        samples, seeds, last = group
        if seeds is None:
            return self._plain_views(samples), last
        pairs = zip(self._shrunk(samples), seeds, strict=True)
        return [self.transform.augmented(picture, seed) for picture, seed in pairs], last

    def _plain_views(self, samples: Samples) -> list[np.ndarray]:
        names = [f"plain/{key}" for key in samples.keys]
        found = {n: known for n in names if (known := self._memory.get(n)) is not None}
        missing = [i for i, name in enumerate(names) if name not in found]
        for i, picture in zip(missing, self._originals(samples.subset(missing)), strict=True):
            # A copy, because a view that was cut out of a larger one holds all of that.
            view = self.transform.plain(picture).numpy().copy(order="K")
            found[names[i]] = view
            self._remember(names[i], view)
        return [found[name] for name in names]

    def _originals(self, samples: Samples) -> Iterator[np.ndarray]:
        """Decoded pictures, from memory, the cache on disk or their source, one at a time."""
        kept: dict[str, np.ndarray] = {}
        if self._pictures is not None:
            ids = dict(zip(samples.keys, samples.ids, strict=True))
            wanted = [key for key in samples.keys if key not in self._memory]
            load = partial(_load_parts, samples, ids)
            kept = self._pictures.fill(wanted, load, _GROUP)
        for key, sample_id in zip(samples.keys, samples.ids, strict=True):
            picture = self._memory.get(key, kept.get(key))
            if picture is None:
                picture = load_picture(samples.load, sample_id)
            if self.transform.is_small(picture):
                self._remember(key, picture)
            yield picture

    def _shrunk(self, samples: Samples) -> Iterator[np.ndarray]:
        """What augmented views are made of; large pictures are kept in this form alone.

        A file is decoded in a smaller version at once. That is done even if the whole picture is at
        hand: the two differ a little, and no view may depend on what was looked at before.
        """
        found = [self._memory.get(k, self._memory.get(f"shrunk/{k}")) for k in samples.keys]
        missing = [i for i, picture in enumerate(found) if picture is None]
        by_file = self._pictures is None and hasattr(samples.load, "reduced")
        whole = self._originals(samples.subset([] if by_file else missing))
        for i, (key, sample_id) in enumerate(zip(samples.keys, samples.ids, strict=True)):
            picture = found[i]
            if picture is None:
                if by_file:
                    picture = load_shrunk(samples, sample_id, self.transform)
                else:
                    picture = self.transform.shrunk(next(whole))
                if key not in self._memory:
                    self._remember(f"shrunk/{key}", picture)
            yield picture

    def _remember(self, name: str, array: np.ndarray) -> None:
        """Keep an array while there is room: for few-shot images all of it, else half."""
        is_few_shot = name.removeprefix("shrunk/") in self._few_shot
        limit = _MEMORY_LIMIT if is_few_shot else _MEMORY_LIMIT // 2
        with self._lock:
            if name not in self._memory and self._memory_bytes + array.nbytes <= limit:
                self._memory[name] = array
                self._memory_bytes += array.nbytes


def _grouped(samples: Samples, draws: Iterable[Draw]) -> Iterator[_Group]:
    """Every batch in groups that one thread makes; the last of a batch says so."""
    for positions, seeds in draws:
        for start in range(0, len(positions), _GROUP):
            part = slice(start, start + _GROUP)
            chosen = samples.subset(positions[part])
            last = start + _GROUP >= len(positions)
            yield chosen, None if seeds is None else seeds[part], last


def _stacked(views: list[Any]) -> torch.Tensor:
    # NumPy and torch choose other strides in places, on which the last bits of a convolution may
    # depend: plain views (arrays) and augmented ones (tensors) each keep to their own.
    return torch.stack(views) if torch.is_tensor(views[0]) else torch.from_numpy(np.stack(views))


def _load_parts(
    samples: Samples, ids: dict[str, str], parts: Iterable[list[str]]
) -> Iterator[dict[str, np.ndarray]]:
    for part in parts:
        yield {key: load_picture(samples.load, ids[key]) for key in part}


def load_shrunk(samples: Samples, sample_id: str, transform: Transform) -> np.ndarray:
    """One picture as augmented views are made of it.

    A loader may offer `reduced(sample_id, least)`, which need not decode all of a picture.
    """
    reduced = getattr(samples.load, "reduced", None)
    load = partial(reduced, least=transform.short_side) if reduced else samples.load
    return transform.shrunk(load_picture(load, sample_id))
