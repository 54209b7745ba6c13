"""Streams of domains: the data a scenario provides, before any method sees it.

A scenario plugin builds a `Stream` with *all* training images of every domain; the harness
arranges it (order, base), draws the K shots (`data.shots`) and shows methods only sealed
views (`runs.views`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.errors import DataError, RequestError, unknown

from .content_keys import ContentKeys, Loader, PictureKeys
from .stream_guard import check_allowed

#: The presets of `data.transforms`, named here because that module imports torch.
TRANSFORMS = ("cddb", "clip", "core50", "domainnet")


@dataclass(frozen=True)
class ScenarioId:
    """`<dataset>-<K>shot`, optionally `@<variant>`."""

    dataset: str
    shots: int
    variant: str = ""

    @classmethod
    def parse(cls, text: str) -> ScenarioId:
        """Read an id such as `drawn-1shot` or `core50-4shot@blocks`."""
        match = re.fullmatch(r"([a-z][a-z0-9_.+-]*?)-(\d{1,9})shot(?:@([a-z0-9_-]+))?", text)
        if match is None or int(match[2]) < 1:
            raise RequestError(
                f"'{text}' is not a scenario",
                "Write <dataset>-<K>shot, for instance `drawn-1shot`; "
                "`fsdil-bench list scenarios` shows them.",
            )
        return cls(match[1], int(match[2]), match[3] or "")

    def __str__(self) -> str:
        return f"{self.dataset}-{self.shots}shot" + (f"@{self.variant}" if self.variant else "")


@dataclass(frozen=True)
class ScenarioRequest:
    """What the user asked of a scenario plugin: a variant, where the data is, its own options."""

    variant: str = ""
    data: Path | None = None
    names: Path | None = None
    synonyms: Path | None = None
    options: Any = None


@dataclass(frozen=True, eq=False)
class Samples:
    """Labelled images: ids, labels and how to load one.

    `keys` identify the content of each image, for the caches and the run's id. `file_samples` makes
    them from the files' bytes. Where a picture is computed, give keys that say how, for instance
    `v1/<id>`: they count within the scenario, its options and the version of its code. Without
    keys every picture is loaded and hashed before the run starts.

    `groups` name what each image was taken from, for instance a video: images of one group are
    alike, so they say less than as many independent images. Empty: every image is its own group.
    """

    ids: tuple[str, ...]
    labels: np.ndarray
    load: Loader
    keys: Sequence[str] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        labels.setflags(write=False)  # only the harness holds them: methods get copies
        object.__setattr__(self, "labels", labels)
        if not self.keys:
            object.__setattr__(self, "keys", PictureKeys(self.ids, self.load))
        if not len(self.ids) == len(self.labels) == len(self.keys):
            raise ValueError("ids, labels and keys must have one entry per image")
        if self.groups and len(self.groups) != len(self.ids):
            raise ValueError("groups must have one entry per image, or none at all")

    def __len__(self) -> int:
        return len(self.ids)

    def subset(self, positions: Iterable[int]) -> Samples:
        """The samples at `positions`, in that order."""
        chosen = list(positions)
        keys = self.keys
        return Samples(
            tuple(self.ids[i] for i in chosen),
            self.labels[chosen],
            self.load,
            keys.select(chosen)
            if isinstance(keys, ContentKeys)
            else tuple(keys[i] for i in chosen),
            tuple(self.groups[i] for i in chosen) if self.groups else (),
        )

    def digest(self) -> str:
        """A hash of ids, labels, keys and groups in order: the same value means the same images."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        lines = zip(self.ids, self.labels.tolist(), self.keys, strict=True)
        text = "\n".join(f"{i} {y} {key}" for i, y, key in lines)
        if self.groups:  # otherwise the hash is that of versions without groups
            text += "\ngroups\n" + "\n".join(self.groups)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Domain:
    """One domain: its training images and its test images."""

    name: str
    train: Samples
    test: Samples


@dataclass(frozen=True, eq=False)
class Stream:
    """Domains in the order they come, over one set of classes.

    `transform` names the preset of `data.transforms` for its images. `keep_images` asks the
    harness to keep decoded images in the cache on disk: right for small or computed pictures.
    `unseen` are named test sets of no domain, for instance recordings at another place: they are
    predicted after every domain and reported beside the accuracy matrix.
    """

    name: str
    class_names: tuple[str, ...]
    domains: tuple[Domain, ...]
    synonyms: tuple[tuple[str, ...], ...] = ()
    transform: str = "clip"
    keep_images: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)
    unseen: tuple[tuple[str, Samples], ...] = ()

    def __post_init__(self) -> None:
        check_allowed(self.name)  # also where a method calls a scenario's builder itself

    def digest(self) -> str:
        """A hash of everything about the stream that can change a result."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [self.name, self.transform, *self.class_names]
        parts += ["|".join(words) for words in self.synonyms]
        for domain in self.domains:
            parts += [domain.name, domain.train.digest(), domain.test.digest()]
        for name, samples in self.unseen:
            parts += [f"unseen {name}", samples.digest()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def arrange(stream: Stream, order: Sequence[str] = (), base: str = "") -> Stream:
    """The stream with its domains in `order` (a selection is fine) and `base` first."""
    by_name = {domain.name: domain for domain in stream.domains}
    names = list(order) or list(by_name)
    for name in [*names, *([base] if base else [])]:
        if name not in by_name:
            error = unknown(
                f"domain of {stream.name}:", name, by_name, "fsdil-bench list scenarios"
            )
            raise RequestError(error.message, f"It has: {', '.join(by_name)}.")
    if order and base and base not in order:
        raise RequestError(
            f"the base domain '{base}' is not in the order {', '.join(names)}",
            "Add it to --order, or leave --base out.",
        )
    if len(set(names)) < len(names):
        raise RequestError(f"the order {', '.join(names)} names a domain twice", "Name each once.")
    if base:
        names = [base, *(name for name in names if name != base)]
    return replace(stream, domains=tuple(by_name[name] for name in names))


def check_stream(stream: Stream, shots: int) -> None:
    """Refuse a stream that cannot be run, naming the domain and the class."""
    classes = len(stream.class_names)
    if classes < 2:
        raise DataError(
            f"{stream.name} has {classes} class", "A stream needs at least two classes."
        )
    if not stream.domains:
        raise DataError(f"{stream.name} has no domain", "Check the data folder.")
    if stream.synonyms and len(stream.synonyms) != classes:
        raise DataError(
            f"{stream.name} has synonyms for {len(stream.synonyms)} of {classes} classes"
        )
    check_transform(stream.transform)
    _check_unseen(stream)
    for t, domain in enumerate(stream.domains):
        needed = shots if t else 1
        for part, samples, least in (("training", domain.train, needed), ("test", domain.test, 1)):
            _check_labels(stream, f"domain '{domain.name}'", samples)
            counts = np.bincount(samples.labels, minlength=classes)
            if counts.min() < least:
                c = int(counts.argmin())
                raise DataError(
                    f"{stream.name}: domain '{domain.name}' has {counts[c]} {part} images of class "
                    f"'{stream.class_names[c]}', but {least} are needed",
                    "Add images, choose fewer shots, or leave the domain out with --order.",
                )


def check_transform(name: str) -> None:
    """Refuse a preset of transforms that does not exist."""
    if name not in TRANSFORMS:
        error = unknown("transform", name, TRANSFORMS, "fsdil-bench run --help")
        raise RequestError(error.message, f"There are: {', '.join(TRANSFORMS)}.")


def _check_unseen(stream: Stream) -> None:
    names = [name for name, _ in stream.unseen]
    if len(set(names)) < len(names):
        raise DataError(f"{stream.name} has two unseen test sets of one name")
    for name, samples in stream.unseen:
        if not len(samples):
            raise DataError(
                f"{stream.name}: unseen test set '{name}' has no image", "Check the data folder."
            )
        _check_labels(stream, f"unseen test set '{name}'", samples)


def _check_labels(stream: Stream, what: str, samples: Samples) -> None:
    labels = samples.labels
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(stream.class_names):
        raise DataError(f"{stream.name}: {what} has labels outside the classes")
