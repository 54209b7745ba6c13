"""Frozen features of samples, each computed once and kept on disk.

They are keyed by the model's weights, the transform and the picture's content, so that methods,
seeds and shots share them.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import file_name_part
from fsdil_bench.data.scenario import Samples
from fsdil_bench.progress import Progress

from .decoded_pictures import GROUP

if TYPE_CHECKING:
    from .pictures import Draw, Pictures


class FrozenFeatures:
    """Embeddings of plain views by the frozen backbone of `pictures`; `cache` is a folder."""

    def __init__(self, pictures: Pictures, cache: Path, progress: Progress) -> None:
        self._pictures = pictures
        self._progress = progress
        tower, weights = pictures.backbone.image_tower
        key = f"{weights}/{pictures.backbone.code}/{pictures.transform.digest()}"
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        self.store = ArrayStore(cache / f"features-{file_name_part(tower)}-{name}.sqlite")

    def of(self, samples: Samples) -> torch.Tensor:
        """Unit embeddings, (n, d), on the CPU."""
        backbone = self._pictures.backbone
        known = self.store.get(samples.keys)
        missing = [i for i, key in enumerate(samples.keys) if key not in known]
        if missing:
            absent = samples.subset(missing)
            with self._progress.phase("frozen features", len(missing)):
                embed = partial(self._embed, absent)
                known |= self.store.fill(absent.keys, embed, backbone.batch_size)
        empty = np.zeros((0, backbone.embed_dim), np.float32)
        return torch.from_numpy(np.stack([known[k] for k in samples.keys]) if known else empty)

    def _embed(
        self, samples: Samples, parts: Iterable[list[str]]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Embeddings by key, of one part of the samples' keys after the other."""
        backbone = self._pictures.backbone
        position = {key: i for i, key in enumerate(samples.keys)}
        begun: deque[list[str]] = deque()

        def draws() -> Iterator[Draw]:
            for part in parts:
                begun.append(part)
                yield [position[key] for key in part], None

        # No more than two batches ahead: what is begun here, other processes wait for.
        ahead = 2 * backbone.batch_size // GROUP
        for views in self._pictures.batches(samples, draws(), ahead):
            part = begun.popleft()
            pixels = self._pictures.transform.normalise(views, backbone.device)
            embeddings = backbone.frozen_features(pixels).cpu().numpy()
            self._pictures.meter.count("features", len(part))
            self._progress.advance(len(part))
            yield dict(zip(part, embeddings, strict=True))
