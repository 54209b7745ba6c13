"""Pictures, views and frozen features of samples, each computed once.

Decoded pictures and plain views are kept in memory up to a limit; frozen features (and, for
streams that ask for it, decoded pictures) also on disk, keyed by the model's weights, the
transform and the picture's content, so that methods, seeds and shots share them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from .backbone import Backbone
from .cost import Meter
from .errors import DataError, FsdilError
from .progress import Progress
from .scenario import Samples, Stream
from .store import ArrayStore
from .transforms import Transform

_MEMORY_LIMIT = 2 << 30  # bytes of decoded pictures and plain views held in memory
_STEP = 512  # samples handled between two writes to the cache


class Pictures:
    """All ways to look at the samples of one stream through one backbone."""

    def __init__(
        self,
        stream: Stream,
        backbone: Backbone,
        transform: Transform,
        cache: Path,
        progress: Progress,
        meter: Meter | None = None,
    ) -> None:
        self.backbone = backbone
        self.meter = meter or Meter()
        self.transform = transform
        self._progress = progress
        self._memory: dict[str, np.ndarray] = {}
        self._memory_bytes = 0
        key = f"{backbone.weights_hash}/{backbone.precision}/{transform.digest()}"
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._features = ArrayStore(cache / f"features-{backbone.name}-{name}.sqlite")
        kept = cache / f"pictures-{stream.name}.sqlite" if stream.keep_images else None
        self._pictures = ArrayStore(kept) if kept else None

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen unit embeddings of the plain views, (n, d), on the CPU."""
        with self.meter.phase("features"):
            known = self._features.get(samples.keys)
            missing = [i for i, key in enumerate(samples.keys) if key not in known]
            if missing:
                self.meter.count("features", len(missing))
                with self._progress.phase("frozen features", len(missing)):
                    for start in range(0, len(missing), _STEP):
                        part = samples.subset(missing[start : start + _STEP])
                        fresh = self._embed(part)
                        self._features.put(fresh)
                        known.update(fresh)
            empty = np.zeros((0, self.backbone.embed_dim), np.float32)
            return torch.from_numpy(np.stack([known[k] for k in samples.keys]) if known else empty)

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views, uint8 (n, 3, size, size)."""
        with self.meter.phase("images"):
            names = [f"plain/{key}" for key in samples.keys]
            missing = [i for i, name in enumerate(names) if name not in self._memory]
            fresh: dict[int, np.ndarray] = {}
            pictures = self._originals(samples.subset(missing))
            for i, picture in zip(missing, pictures, strict=True):
                fresh[i] = self.transform.plain(picture).numpy()
                self._remember(names[i], fresh[i])
            views = [fresh[i] if i in fresh else self._memory[name] for i, name in enumerate(names)]
            return torch.from_numpy(np.stack(views))

    def augmented(self, samples: Samples, seeds: Sequence[int]) -> torch.Tensor:
        """One random view of each sample, uint8 (n, 3, size, size)."""
        with self.meter.phase("images"):
            pairs = zip(self._originals(samples), seeds, strict=True)
            return torch.stack([self.transform.augmented(picture, seed) for picture, seed in pairs])

    def close(self) -> None:
        """Release the caches."""
        self._features.close()
        if self._pictures is not None:
            self._pictures.close()

    def _embed(self, samples: Samples) -> dict[str, np.ndarray]:
        fresh: dict[str, np.ndarray] = {}
        size = self.backbone.batch_size
        for start in range(0, len(samples), size):
            part = samples.subset(range(start, min(start + size, len(samples))))
            pixels = self.transform.normalise(self.plain(part), self.backbone.device)
            embeddings = self.backbone.encode_image(pixels).cpu().numpy()
            fresh.update(zip(part.keys, embeddings, strict=True))
            self._progress.advance(len(part))
        return fresh

    def _originals(self, samples: Samples) -> list[np.ndarray]:
        """Decoded pictures, from memory, the cache on disk or their source, in this order."""
        found = {k: self._memory[k] for k in samples.keys if k in self._memory}
        if self._pictures is not None and len(found) < len(samples):
            on_disk = self._pictures.get([k for k in samples.keys if k not in found])
            for key, picture in on_disk.items():
                self._remember(key, picture)
            found.update(on_disk)
        missing = {k: i for k, i in zip(samples.keys, samples.ids, strict=True) if k not in found}
        if missing:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                loaded = pool.map(
                    lambda sample_id: load_picture(samples, sample_id), missing.values()
                )
                fresh = dict(zip(missing, loaded, strict=True))
            if self._pictures is not None:
                self._pictures.put(fresh)
            for key, picture in fresh.items():
                self._remember(key, picture)
            found.update(fresh)
        return [found[key] for key in samples.keys]

    def _remember(self, key: str, array: np.ndarray) -> None:
        if key not in self._memory and self._memory_bytes + array.nbytes <= _MEMORY_LIMIT:
            self._memory[key] = array
            self._memory_bytes += array.nbytes


def load_picture(samples: Samples, sample_id: str) -> np.ndarray:
    """One decoded picture; one that cannot be read is reported with its id."""
    try:
        picture = np.asarray(samples.load(sample_id))
    except FsdilError:
        raise
    except Exception as error:
        raise DataError(
            f"image '{sample_id}' cannot be read: {type(error).__name__}: {error}",
            "Replace or remove the file and run the same command again.",
        ) from error
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise DataError(
            f"image '{sample_id}' is {picture.dtype} {picture.shape}, not uint8 (height, width, 3)",
            "The scenario's loader must return RGB images.",
        )
    return picture
