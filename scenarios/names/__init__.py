"""Class names and synonyms of the published data sets, and how users replace them.

Every data set has a file `<data set>.json`: {class folder: {"name": ..., "synonyms": [...]}}, the
classes in the order of the data set's labels. DN4IL is 100 classes of DomainNet, so its file only
lists them. `rules` says what makes good synonyms, `generate` asks a language model for some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fsdil_bench import DataError

Texts = tuple[str, ...]


def class_texts(
    data_set: str, folders: Sequence[str], names: Path | None = None, synonyms: Path | None = None
) -> tuple[Texts, tuple[Texts, ...]]:
    """Names and synonyms of the classes `folders`, in that order.

    They come from the data set's own file unless the user's files `names`, {folder: name}, and
    `synonyms`, {folder: [texts]}, say otherwise.
    """
    return (
        read_names(names, folders) if names else _own(data_set, folders, "name"),
        read_synonyms(synonyms, folders)
        if synonyms
        else tuple(tuple(texts) for texts in _own(data_set, folders, "synonyms")),
    )


def class_folders(data_set: str) -> Texts:
    """The class folders of a data set: class k of its published lists is the k-th of them."""
    return tuple(_load(data_set))


def dn4il_folders() -> Texts:
    """The 100 folders of DomainNet that make up DN4IL, in the order of its labels."""
    return tuple(sorted(folder for group in _load("dn4il").values() for folder in group))


def read_names(path: Path, folders: Iterable[str]) -> Texts:
    """The names of the classes `folders` from a JSON file {folder: name}."""
    mapping = read_mapping(path, folders)
    for folder, name in mapping.items():
        _check_text(path, folder, name)
    return tuple(mapping.values())


def read_synonyms(path: Path, folders: Iterable[str]) -> tuple[Texts, ...]:
    """The synonyms of the classes `folders` from a JSON file {folder: [texts]}; [] for none."""
    mapping = read_mapping(path, folders)
    for folder, texts in mapping.items():
        if not isinstance(texts, list):
            raise DataError(
                f"'{path}' has no list of texts for the class '{folder}'",
                f'Write "{folder}": ["first synonym", "second synonym", ...].',
            )
        for text in texts:
            _check_text(path, folder, text)
    counts = {len(texts) for texts in mapping.values() if texts}
    if len(counts) > 1:
        raise DataError(
            f"'{path}' has {min(counts)} synonyms for some classes and {max(counts)} for others",
            "Give every class the same number of synonyms, or none ([]).",
        )
    return tuple(tuple(texts) for texts in mapping.values())


def read_mapping(path: Path, folders: Iterable[str]) -> dict[str, Any]:
    """The entries for the classes `folders`, in that order, of a JSON object; all must be there."""
    mapping = read_object(path)
    wanted = list(folders)
    missing = [folder for folder in wanted if folder not in mapping]
    if missing:
        raise DataError(f"'{path}' lacks {_some(missing)}", "Name every class folder.")
    return {folder: mapping[folder] for folder in wanted}


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        mapping = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"'{path}' cannot be read: {error}", "It must be a JSON object.") from None
    if not isinstance(mapping, dict):
        raise DataError(
            f"'{path}' is not a JSON object", 'It must be {"<class folder>": ..., ...}.'
        )
    return mapping


def _check_text(path: Path, folder: str, text: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise DataError(
            f"'{path}' has {json.dumps(text)} where the class '{folder}' needs a text",
            "Every name and every synonym is a text that is not empty.",
        )


def _own(data_set: str, folders: Sequence[str], field: str) -> tuple[Any, ...]:
    texts = _load(data_set)
    missing = [folder for folder in folders if folder not in texts]
    if missing:
        raise DataError(
            f"there is no {field} for {_some(missing)} of the data set '{data_set}'",
            "Give your own with --names and --synonyms, or remove those classes from the data.",
        )
    return tuple(texts[folder][field] for folder in folders)


@cache
def _load(data_set: str) -> dict[str, Any]:
    path = Path(__file__).with_name(f"{data_set}.json")
    texts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def _some(folders: list[str]) -> str:
    rest = len(folders) - 5
    shown = ", ".join(folders[:5]) + (f" and {rest} more" if rest > 0 else "")
    return f"the class{'es' if len(folders) > 1 else ''} {shown}"
