"""Reading digits as published: IDX (MNIST), folders (MNIST-M), MATLAB (SVHN) and libsvm (USPS).

Labels are read when a stream is built. Pictures of packed files are unpacked when the first of
them is asked for, and stay in memory. No file is unpickled. What is not as published is an error
that names the file.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fsdil_bench import DataError, Samples, file_samples

from .image_folders import remedy

_MOST = 1_000_000  # images: more than any of the files has

#: The files of each part, below the data set's folder: pictures and labels.
FILES = {
    ("mnist", "train"): ("mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"),
    ("mnist", "test"): ("mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz"),
    ("mnist-m", "train"): ("mnist_m/mnist_m_train", "mnist_m/mnist_m_train_labels.txt"),
    ("mnist-m", "test"): ("mnist_m/mnist_m_test", "mnist_m/mnist_m_test_labels.txt"),
    ("svhn", "train"): ("svhn/train_32x32.mat", "svhn/train_32x32.mat"),
    ("svhn", "test"): ("svhn/test_32x32.mat", "svhn/test_32x32.mat"),
    ("usps", "train"): ("usps/usps.bz2", "usps/usps.bz2"),
    ("usps", "test"): ("usps/usps.t.bz2", "usps/usps.t.bz2"),
}


def read_part(root: Path, domain: str, part: str) -> Samples:
    """The images of one part of one data set, with ids `<domain>/<part>/<number or file>`."""
    pictures, labels = (root / file for file in FILES[domain, part])
    with _named(labels, root):
        if domain == "mnist-m":
            return _listed(pictures, labels, f"{domain}/{part}/")
        found = READERS[domain].labels(labels)
        if len(found) and not 0 <= found.min() <= found.max() <= 9:
            raise ValueError("it has labels that are no digits")
    prefix = f"{domain}/{part}/"
    ids = tuple(f"{prefix}{number:05}" for number in range(len(found)))
    return Samples(ids, found, PackedImages(domain, pictures, root, len(found), prefix))


@dataclass(frozen=True)
class PackedImages:
    """Loads pictures of one packed file by ids that are a prefix and a number."""

    domain: str
    file: Path
    root: Path
    count: int
    prefix: str

    def __call__(self, sample_id: str) -> np.ndarray:
        """One picture as RGB."""
        picture = self._all()[int(sample_id.removeprefix(self.prefix))]
        return picture if picture.ndim == 3 else np.repeat(picture[:, :, None], 3, axis=2)

    def _all(self) -> np.ndarray:
        with _named(self.file, self.root):
            pictures = _unpacked(self.domain, self.file, self.file.stat().st_mtime_ns)
            if len(pictures) != self.count:
                raise ValueError(f"it has {len(pictures)} pictures for {self.count} labels")
        return pictures


@lru_cache(maxsize=8)  # all eight parts
def _unpacked(domain: str, file: Path, changed: int) -> np.ndarray:
    return READERS[domain].pictures(file)


@contextmanager
def _named(file: Path, root: Path) -> Iterator[None]:
    """Turn whatever a damaged or missing file raises into an error that names it."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"'{file}' is not there", remedy("digits", root)) from None
    except Exception as error:  # gzip, bz2, scipy and numpy have a dozen kinds between them
        reason = str(error) or type(error).__name__
        raise DataError(f"'{file}' cannot be read: {reason}", remedy("digits", root)) from error


def _idx(file: Path, sides: int) -> np.ndarray:
    """The bytes of an IDX file of `sides` dimensions: a magic number, the lengths, the content."""
    with gzip.open(file) as stream:
        head = stream.read(4 + 4 * sides)
        shape = tuple(np.frombuffer(head[4:], ">u4").tolist())
        if (
            head[:4] != bytes([0, 0, 8, sides])
            or shape[0] > _MOST
            or shape[1:] not in ((), (28, 28))
        ):
            raise ValueError("it does not begin like MNIST's file")
        size = int(np.prod(shape))
        content = stream.read(size + 1)
    if len(content) != size:
        raise ValueError(f"it should hold {size} bytes; it was cut short or is another file")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _mnist_labels(file: Path) -> np.ndarray:
    return _idx(file, 1)


def _mnist_pictures(file: Path) -> np.ndarray:
    return _idx(file, 3)


def _mat(file: Path, variable: str) -> np.ndarray:
    from scipy.io import loadmat

    with file.open("rb") as stream:
        return np.asarray(loadmat(stream, variable_names=[variable])[variable])


def _svhn_labels(file: Path) -> np.ndarray:
    return _mat(file, "y").reshape(-1).astype(np.int64) % 10  # a zero is called 10


def _svhn_pictures(file: Path) -> np.ndarray:
    pictures = _mat(file, "X")
    if pictures.dtype != np.uint8 or pictures.shape[:3] != (32, 32, 3):
        raise ValueError(f"X is {pictures.dtype} of shape {pictures.shape}")
    return np.ascontiguousarray(pictures.transpose(3, 0, 1, 2))


def _usps_lines(file: Path) -> list[bytes]:
    with bz2.open(file) as stream:
        return stream.read(_MOST * 256).splitlines()


def _usps_labels(file: Path) -> np.ndarray:
    return np.array([int(line.split(None, 1)[0]) - 1 for line in _usps_lines(file)], np.int64)


def _usps_pictures(file: Path) -> np.ndarray:
    """Values from -1 (paper) to 1 (ink), as `<place>:<value>` for all 256 places."""
    lines = _usps_lines(file)
    values = re.sub(rb"\d+:", b"", b" ".join(line.split(None, 1)[1] for line in lines))
    grey = np.array(values.split(), np.float32).reshape(len(lines), 16, 16)
    return np.round((grey.clip(-1, 1) + 1) * 127.5).astype(np.uint8)


@dataclass(frozen=True)
class Reader:
    """How the files of one data set are read."""

    labels: Callable[[Path], np.ndarray]
    pictures: Callable[[Path], np.ndarray]


READERS = {
    "mnist": Reader(_mnist_labels, _mnist_pictures),
    "svhn": Reader(_svhn_labels, _svhn_pictures),
    "usps": Reader(_usps_labels, _usps_pictures),
}


def _listed(folder: Path, labels: Path, prefix: str) -> Samples:
    """MNIST-M: a folder of images, and lines `<image> <label>`."""
    from fsdil_bench import missing_files

    pairs = [line.split() for line in labels.read_text(encoding="utf-8").splitlines() if line]
    if not all(len(pair) == 2 and re.fullmatch(r"[0-9]", pair[1]) for pair in pairs):
        raise ValueError("its lines are not `<image> <label>`")
    names = [name for name, _ in pairs]
    if any("/" in name or "\\" in name for name in names):
        raise ValueError("it names files of other folders")
    absent = missing_files(folder.parent, [f"{folder.name}/{name}" for name in names])
    if absent:
        raise ValueError(f"{len(absent)} of its {len(names)} images are not there: {absent[0]}")
    return file_samples(folder, names, [int(label) for _, label in pairs], prefix)
