"""Keys of images that are equal for equal content, and loading one image.

The caches and the ids of runs use these keys. So they follow from the content, not from where the
images are or what they are called.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from fsdil_bench.errors import DataError, FsdilError

#: Loads one image by its sample id: RGB, uint8, (height, width, 3). It may have an attribute
#: `reduced(sample_id, least)` that returns a smaller version with sides of at least `least` pixels.
Loader = Callable[[str], np.ndarray]


class ContentKeys(Sequence[str]):
    """Keys that follow from the content of images; all of them are made when one is asked for."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._made: list[str] | None = None

    @abstractmethod
    def make(self) -> list[str]:
        """The keys, in order."""

    @abstractmethod
    def part(self, positions: Sequence[int]) -> ContentKeys:
        """The keys at `positions`, not made yet."""

    def select(self, positions: Sequence[int]) -> ContentKeys:
        """The keys at `positions`, in that order; none is made for that."""
        part = self.part(positions)
        if self._made is not None:
            part._made = [self._made[i] for i in positions]
        return part

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: Any) -> Any:
        return self._all()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def _all(self) -> list[str]:
        if self._made is None:
            self._made = self.make()
        return self._made


class PictureKeys(ContentKeys):
    """Hashes of decoded pictures: always right, but every picture has to be loaded."""

    def __init__(self, ids: tuple[str, ...], load: Loader) -> None:
        super().__init__(len(ids))
        self._ids, self._load = ids, load

    def make(self) -> list[str]:
        """Load all pictures and hash them."""
        return [picture_key(load_picture(self._load, sample_id)) for sample_id in self._ids]

    def part(self, positions: Sequence[int]) -> PictureKeys:
        """The keys of some of the pictures."""
        return PictureKeys(tuple(self._ids[i] for i in positions), self._load)


def load_picture(load: Loader, sample_id: str) -> np.ndarray:
    """One decoded picture; one that cannot be read is reported with its id."""
    try:
        picture = np.asarray(load(sample_id))
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


def picture_key(picture: np.ndarray) -> str:
    """The key of a decoded picture: equal for equal pixels."""
    digest = hashlib.blake2b(str(picture.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(picture).tobytes())
    return f"pixels-{digest.hexdigest()}"
