"""Data sets of Hugging Face, from folders that `save_to_disk` wrote.

Such a folder holds tables (Arrow), which are mapped into memory: no code of the data set is run,
nothing is unpickled, nothing is fetched and nothing is written.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench import DataError, RequestError

from .labelled import Labelled

_TEST_SPLITS = ("test", "validation", "valid", "val")


def open_parts(name: str, data: Path) -> list[Labelled]:
    """The training and test part of a data set, or all of it where there are no such parts."""
    folder = data / name
    if not folder.resolve().is_relative_to(data.resolve()):
        raise RequestError(
            f"'hf:{name}' leads out of '{data}'", "Write hf:<owner>/<name>, below that folder."
        )
    library = _library()
    try:
        found = library.load_from_disk(str(folder))
    except Exception as error:  # a missing folder, another one, damaged tables
        raise DataError(
            f"'{folder}' is not a data set written by save_to_disk: {error}",
            'To fetch and write it: python -c "from datasets import load_dataset; '
            f'load_dataset({name!r}).save_to_disk({str(folder)!r})"',
        ) from error
    if not isinstance(found, dict):
        return [_part(library, found, folder)]
    test = next((split for split in _TEST_SPLITS if split in found), "")
    if "train" not in found or (not test and len(found) > 1):
        raise DataError(
            f"'{folder}' has the parts {', '.join(found)}",
            "It needs one that is called train, and test or validation.",
        )
    return [_part(library, found[split], folder) for split in ("train", test) if split]


def _library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise RequestError(
            "data sets of Hugging Face need the package 'datasets'",
            "Install it with: pip install 'fsdil-bench[hub]'",
        ) from None


def _part(library: Any, table: Any, folder: Path) -> Labelled:
    image = _column(table, library.Image, folder)
    label = _column(table, library.ClassLabel, folder)
    labels = np.asarray(table.with_format("numpy")[label][:], np.int64)
    return Labelled(labels, lambda number: table[number][image], tuple(table.features[label].names))


def _column(table: Any, kind: type, folder: Path) -> str:
    for name, feature in table.features.items():
        if isinstance(feature, kind):
            return str(name)
    raise DataError(
        f"'{folder}' has no column of the kind {kind.__name__}: {', '.join(table.features)}",
        "A domain needs images and class labels: change the column with the library's "
        "`cast_column`, and write the data set again.",
    )
