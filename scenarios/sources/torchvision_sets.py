"""Data sets of torchvision, by the name of their class.

They are opened with `download=False`, so nothing is fetched. torchvision compares files that it
unpickles (CIFAR) with their MD5 first; LSUN, where it does not, is refused.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench import DataError, RequestError

from .labelled import Labelled

_UNPICKLED = frozenset({"LSUN", "LSUNClass"})
_TEST_SPLITS = ("test", "val", "valid")


def open_parts(name: str, domain: str, data: Path) -> list[Labelled]:
    """The training and test part of a data set, or all of it where there are no such parts."""
    kind = _kind(name)
    takes = inspect.signature(kind).parameters
    # Data sets have a folder of their own below the root; plain trees of images have not.
    root = data / domain if name == "ImageFolder" else data
    if "train" in takes:
        return [_open(kind, root, train=train) for train in (True, False)]
    if "split" in takes:
        return [_open(kind, root, split="train"), _test_split(kind, root)]
    return [_open(kind, root)]


def _kind(name: str) -> Any:
    from torchvision import datasets

    kind = getattr(datasets, name, None) if name in datasets.__all__ else None
    if kind is None or "root" not in inspect.signature(kind).parameters:
        raise RequestError(
            f"torchvision has no data set '{name}' that is read from a folder",
            "Write the name of its class, for instance torchvision:MNIST.",
        )
    if name in _UNPICKLED:
        raise RequestError(
            f"torchvision's {name} unpickles files that it does not check",
            "Unpickling can run any code. Take its images as a tree: --scenario folder-<K>shot.",
        )
    return kind


def _open(kind: Any, root: Path, **choice: Any) -> Labelled:
    try:
        opened = kind(str(root), **choice)
        labels = np.asarray(_labels(opened))
    except Exception as error:  # each of fifty classes has its own way to say what is missing
        given = "".join(f", {key}={value!r}" for key, value in choice.items())
        raise DataError(
            f"torchvision's {kind.__name__} cannot be opened in '{root}': {error}",
            'To fetch it: python -c "import torchvision; '
            f'torchvision.datasets.{kind.__name__}({str(root)!r}{given}, download=True)"'
            if "download" in inspect.signature(kind).parameters
            else f"Put its files there, as torchvision's page on {kind.__name__} says.",
        ) from error
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"torchvision's {kind.__name__} has no class per image",
            "Only data sets for classification can be domains.",
        )
    classes = tuple(map(str, getattr(opened, "classes", ())))
    return Labelled(labels, lambda number: opened[number][0], classes)


def _test_split(kind: Any, root: Path) -> Labelled:
    for name in _TEST_SPLITS[:-1]:
        try:
            return _open(kind, root, split=name)
        except DataError as error:
            if not isinstance(error.__cause__, ValueError):  # the split is known, but not there
                raise
    return _open(kind, root, split=_TEST_SPLITS[-1])


def _labels(opened: Any) -> Any:
    """The labels; where no attribute holds them, images are opened for that."""
    for name in ("targets", "labels", "_labels", "y"):
        if hasattr(opened, name):
            return getattr(opened, name)
    return [int(opened[number][1]) for number in range(len(opened))]
