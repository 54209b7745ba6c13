"""Images in files: finding, naming and reading them, for scenarios that read folders.

Half a million files must not delay the start of a run. One listing per folder shows whether files
are there. Once all were there, the times of the folders are enough: a file that is added or removed
changes them. The content of the files (`fsdil_bench.data.file_hashes`) is read only for those that
a run uses, all at once, when the first of their keys is asked for.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.errors import DataError
from fsdil_bench.system.atomic_files import write_atomically

from .content_keys import ContentKeys
from .file_hashes import content_hashes
from .scenario import Samples

if TYPE_CHECKING:
    from PIL.Image import Image

_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm")

_SETTLED = 2_000_000_000  # ns after which another change of a folder gets another time

# The first bytes of JPEG, PNG, BMP, GIF, TIFF (in both byte orders), PPM and WebP files.
_SIGNATURES = (
    b"\xff\xd8\xff", b"\x89PNG", b"BM", b"GIF8", b"II*\0", b"MM\0*", b"P6", b"P3", b"RIFF",
)  # fmt: skip


def read_image(root: Path, sample_id: str, least: int | None = None) -> np.ndarray:
    """An image file as RGB, uint8 (height, width, 3); transparent parts become white.

    Of 16 bits per colour the upper 8 count, of an animation the first picture. A note in the file
    that the picture should be turned (EXIF) does not count.

    With `least`, a smaller version will do whose sides are at least so long: a JPEG file may then
    be decoded at a half, a quarter or an eighth of its size, which takes less time.
    """
    import PIL.Image

    _accept_large_images()
    path = root / sample_id
    try:
        with PIL.Image.open(path) as file:
            if least is not None:
                file.draft(None, (least, least))
            image: Image = file
            if image.mode.startswith(("I", "F")):
                image = _in_8_bits(image, path)
            key = image.info.get("transparency")
            if isinstance(key, tuple) and max(key) > 255:  # of 16 bits, as the file's colours
                image.info["transparency"] = tuple(part >> 8 for part in key)
            if image.mode in ("RGBA", "LA", "P") or "transparency" in image.info:
                image = image.convert("RGBA")
                image = PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)
            return np.asarray(image.convert("RGB"))
    except DataError:
        raise
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning):
        most = 2 * (PIL.Image.MAX_IMAGE_PIXELS or 0)
        raise DataError(
            f"image '{sample_id}' cannot be read: '{path}' has more than {most:,} pixels",
            "Make the picture smaller with an image editor, or remove the file.",
        ) from None
    except Exception as error:  # Pillow raises a dozen kinds for damaged files
        raise DataError(
            f"image '{sample_id}' cannot be read: '{path}': {error or type(error).__name__}",
            "The file is damaged or was cut short: download or unpack it again, or remove it.",
        ) from error


def _in_8_bits(image: Image, path: Path) -> Image:
    """A greyscale picture of 16 bits as one of 8 bits; Pillow would make nearly all of it white."""
    import PIL.Image

    if not image.mode.startswith("I;16") and image.format not in ("PNG", "PPM"):
        raise DataError(
            f"image '{path}' has numbers of 32 bits (mode {image.mode}), of which black and white "
            "are unknown",
            "Save it with 8 bits per colour, as PNG or JPEG.",
        )
    values = np.asarray(image)
    grey = (values >> 8).astype(np.uint8)
    grey[values == image.info.get("transparency", -1)] = 255  # the one grey that is transparent
    return PIL.Image.fromarray(grey)


@cache
def _accept_large_images() -> None:
    """Pillow warns of images of more than 89 million pixels, and refuses twice that."""
    import PIL.Image

    warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)


def is_image_name(name: str) -> bool:
    """Whether a file of this name is an image that counts; hidden files do not."""
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")


def image_names(folder: str | Path) -> list[str]:
    """The names of the images directly in a folder, sorted; empty if there is no folder."""
    return sorted(name for name in _names(folder) if is_image_name(name))


def missing_files(root: str | Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` (below `root`) that are not there, found with one listing per folder.

    That all are there is remembered until one of their folders changes.
    """
    wanted = list(paths)
    folders = sorted({path.rpartition("/")[0] for path in wanted})
    question = hashlib.sha256("\n".join([str(root), *wanted]).encode()).hexdigest()[:32]
    note = cache_folder() / "complete" / question
    times = _folder_times(root, folders)
    with suppress(OSError):
        if times and note.read_text(encoding="utf-8") == times:
            return []
    there: set[str] = set()
    for folder in folders:
        there.update(f"{folder}/{name}" for name in _names(f"{root}/{folder}"))
    absent = [path for path in wanted if path not in there]
    if times and not absent:
        with suppress(OSError):  # a cache that cannot be written costs a listing next time
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, times)
    return absent


def _folder_times(root: str | Path, folders: Sequence[str]) -> str:
    """When each folder changed last; nothing if one is missing or changed this very moment."""
    try:
        times = [os.stat(f"{root}/{folder}").st_mtime_ns for folder in folders]  # noqa: PTH116
    except OSError:
        return ""
    just_now = time.time_ns() - _SETTLED
    return "" if max(times, default=0) > just_now else " ".join(map(str, times))


def starts_like_an_image(path: str | Path) -> bool:
    """Whether the first bytes of a file are those of an image; nothing is decoded."""
    with open(path, "rb") as file:  # noqa: PTH123 - called for many thousand files
        return file.read(8).startswith(_SIGNATURES)


def file_samples(
    root: Path, paths: Sequence[str], labels: Sequence[int] | np.ndarray, prefix: str = ""
) -> Samples:
    """The images at `paths` below `root` as samples whose ids are `prefix` and path.

    Their keys are hashes of the files' bytes, found out when they are first asked for: an image of
    the same content has the same key in every folder. An empty file is then an error.
    """
    ids = tuple(prefix + path for path in paths) if prefix else tuple(paths)
    keys = FileKeys(root, paths)
    return Samples(ids, np.asarray(labels, np.int64), FileLoader(root, prefix), keys)


@dataclass(frozen=True)
class FileLoader:
    """Loads images by ids that are `prefix` and the path below `root`."""

    root: Path
    prefix: str = ""

    def __call__(self, sample_id: str) -> np.ndarray:
        """The whole picture."""
        return read_image(self.root, sample_id.removeprefix(self.prefix))

    def reduced(self, sample_id: str, least: int) -> np.ndarray:
        """The picture, or a smaller version whose sides are at least `least` long."""
        return read_image(self.root, sample_id.removeprefix(self.prefix), least)


class FileKeys(ContentKeys):
    """Hashes of the bytes of files."""

    def __init__(self, root: Path, paths: Sequence[str]) -> None:
        super().__init__(len(paths))
        self._root, self._paths = root, paths

    def make(self) -> list[str]:
        """Look up the hashes; files that are new or changed are read."""
        return content_hashes(str(self._root.resolve()), self._paths)

    def part(self, positions: Sequence[int]) -> FileKeys:
        """The keys of some of the files."""
        return FileKeys(self._root, [self._paths[i] for i in positions])


def _names(folder: str | Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - half a million Path objects take seconds
    except (FileNotFoundError, NotADirectoryError):
        return []
