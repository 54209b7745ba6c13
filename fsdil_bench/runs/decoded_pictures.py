"""Pictures decoded once: from memory, from the cache on disk or from their source.

Large ones are kept in memory as they are shrunk for augmentation. Streams that ask for it have
decoded pictures also on disk, keyed by their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.data.content_keys import load_picture
from fsdil_bench.data.scenario import Samples
from fsdil_bench.data.transforms import Transform

from .picture_memory import PictureMemory

GROUP = 8  # images a thread makes at a time: spreads a small batch, and costs little per image


class DecodedPictures:
    """The pictures of a stream, and the plain views that are cut out of them; for any thread.

    `file` is the cache on disk, if there is one.
    """

    def __init__(self, transform: Transform, memory: PictureMemory, file: Path | None) -> None:
        self._transform = transform
        self._memory = memory
        self._known = memory.arrays
        self._store = ArrayStore(file) if file else None

    def close(self) -> None:
        """Release the cache."""
        if self._store is not None:
            self._store.close()

    def plain_views(self, samples: Samples) -> list[np.ndarray]:
        """The plain view of each sample."""
        names = [f"plain/{key}" for key in samples.keys]
        found = {n: known for n in names if (known := self._known.get(n)) is not None}
        missing = [i for i, name in enumerate(names) if name not in found]
        for i, picture in zip(missing, self._originals(samples.subset(missing)), strict=True):
            # A copy, because a view that was cut out of a larger one holds all of that.
            view = self._transform.plain(picture).numpy().copy(order="K")
            found[names[i]] = view
            self._memory.keep(names[i], view)
        return [found[name] for name in names]

    def _originals(self, samples: Samples) -> Iterator[np.ndarray]:
        """Decoded pictures, from memory, the cache on disk or their source, one at a time."""
        kept: dict[str, np.ndarray] = {}
        if self._store is not None:
            ids = dict(zip(samples.keys, samples.ids, strict=True))
            wanted = [key for key in samples.keys if key not in self._known]
            load = partial(_load_parts, samples, ids)
            kept = self._store.fill(wanted, load, GROUP)
        for key, sample_id in zip(samples.keys, samples.ids, strict=True):
            picture = self._known.get(key, kept.get(key))
            if picture is None:
                picture = load_picture(samples.load, sample_id)
            if self._transform.is_small(picture):
                self._memory.keep(key, picture)
            yield picture

    def shrunk(self, samples: Samples) -> Iterator[np.ndarray]:
        """What augmented views are made of; large pictures are kept in this form alone.

        A file is decoded in a smaller version at once. That is done even if the whole picture is at
        hand: the two differ a little, and no view may depend on what was looked at before.
        """
        found = [self._known.get(k, self._known.get(f"shrunk/{k}")) for k in samples.keys]
        missing = [i for i, picture in enumerate(found) if picture is None]
        by_file = self._store is None and hasattr(samples.load, "reduced")
        whole = self._originals(samples.subset([] if by_file else missing))
        for i, (key, sample_id) in enumerate(zip(samples.keys, samples.ids, strict=True)):
            picture = found[i]
            if picture is None:
                if by_file:
                    picture = load_shrunk(samples, sample_id, self._transform)
                else:
                    picture = self._transform.shrunk(next(whole))
                if key not in self._known:
                    self._memory.keep(f"shrunk/{key}", picture)
            yield picture


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
