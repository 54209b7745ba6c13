"""Texts that were embedded elsewhere: a stand-in for a text tower that is not at hand.

A file holds texts, usually class names, and one embedding for each. Methods ask for sentences such
as "a photo of a dog.", and a class embedding is often a mean over many of them, so this is the
rule: a text of the file is looked up; any other is answered with the embedding of the one known
name in it, whole words, the longest first. The class names of the run take part in that search, so
that "polar bear" is never answered with "bear". Upper and lower case and spaces do not matter, as
in CLIP's own tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.errors import DataError, RequestError

_FORMAT = "docs/backbones.md shows what a file of text embeddings looks like."


class KnownTexts:
    """A table of texts and their embeddings, scaled to unit length.

    `logit_scale` is, as in open_clip, the logarithm of the factor on cosine similarities.
    """

    def __init__(
        self,
        texts: Sequence[str],
        embeddings: np.ndarray,
        *,
        source: str,
        logit_scale: float | None = None,
    ) -> None:
        self.source = source
        self.logit_scale = logit_scale
        self.embeddings = _unit(np.asarray(embeddings), len(texts), source)
        self._rows = {_plain(text): row for row, text in enumerate(texts)}
        self._by_name: dict[str, str] = {}
        if not texts or len(self._rows) != len(texts):
            raise DataError(f"{source} holds no text, or one of them twice", _FORMAT)

    @property
    def width(self) -> int:
        """How many numbers an embedding has."""
        return int(self.embeddings.shape[1])

    def __len__(self) -> int:
        return len(self._rows)

    def embed(self, texts: Sequence[str], class_names: Sequence[str] = ()) -> np.ndarray:
        """The embeddings of `texts`, (n, d); `class_names` are what the texts may be about."""
        names = tuple(_plain(name) for name in class_names)
        return self.embeddings[[self._row(text, names) for text in texts]]

    def notes(self) -> dict[str, Any]:
        """For the record: how many texts there are, how many further ones were found by a name in
        them, and a few of these."""
        examples = dict(list(self._by_name.items())[:3])
        return {"known": len(self), "by_name": len(self._by_name), "examples": examples}

    def _row(self, text: str, class_names: tuple[str, ...]) -> int:
        plain = _plain(text)
        if plain in self._rows:
            return self._rows[plain]
        names = set(_pattern((*self._rows, *class_names)).findall(plain))
        if len(names) != 1 or not names <= self._rows.keys():
            raise self._unknown(text, names)
        (name,) = names
        self._by_name[text] = name
        return self._rows[name]

    def _unknown(self, text: str, names: Collection[str]) -> RequestError:
        several = f", and it names several: {', '.join(sorted(names))}" if len(names) > 1 else ""
        known = ", ".join(f"'{known}'" for known in list(self._rows)[:8])
        return RequestError(
            f"the text '{text}' is not among the {len(self)} texts of {self.source}{several}",
            f"It knows {known} ... Add the text to the file, or say with --names what the classes "
            "are called there (a JSON file), or take a backbone with a text tower.",
        )


def read_known_texts(path: Path) -> KnownTexts:
    """A file of text embeddings: .npz with `embeddings` and `texts`, or .safetensors with the
    tensor `embeddings` and the texts as a JSON list in the metadata."""
    try:
        texts, arrays = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
        scale = arrays.get("logit_scale")
        return KnownTexts(
            texts,
            arrays["embeddings"],
            source=path.name,
            logit_scale=None if scale is None else float(scale.item()),
        )
    except DataError:
        raise
    except Exception as error:  # the two libraries raise a dozen kinds for a damaged file
        raise DataError(
            f"{path} is not a file of text embeddings: {type(error).__name__}: {error}", _FORMAT
        ) from error


def holds_known_texts(path: Path) -> bool:
    """Whether a file is a table of texts, not a checkpoint."""
    if path.suffix != ".safetensors":
        return path.suffix == ".npz"
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return "embeddings" in set(file.keys())
    except SafetensorError:
        return False


def _read_npz(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return [str(text) for text in arrays["texts"]], arrays


def _read_safetensors(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in set(file.keys())}
        return [str(text) for text in json.loads(file.metadata()["texts"])], arrays


def _unit(embeddings: np.ndarray, texts: int, source: str) -> np.ndarray:
    if embeddings.ndim != 2 or len(embeddings) != texts:
        raise DataError(
            f"{source} has {texts} texts, but embeddings of shape {embeddings.shape}", _FORMAT
        )
    vectors = embeddings.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise DataError(f"{source} holds embeddings that are zero or not finite", _FORMAT)
    return vectors / lengths


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


@lru_cache(maxsize=4)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the names in a text: whole words, the longest where several start."""
    longest_first = sorted(filter(None, set(names)), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")
