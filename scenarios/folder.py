"""The `folder` scenario: any tree `root/<domain>/<class>/<image>` as a stream of domains.

    fsdil-bench run --method ncm --scenario folder-4shot --data ~/pacs --base photo

Domains come in alphabetical order unless `--order` or `--base` says otherwise. Class names are the
folder names with blanks for underscores, or come from a file: `--names` and `--synonyms` take JSON
objects {folder: name} and {folder: [synonyms]}. Inside every domain and class a fixed part of the
images, the same for every run, is the test set.

Copies of one image may fall on both sides of that split, or into two domains. Trees of up to
20,000 images are searched for copies, which are reported. `--scenario-set drop_duplicates=true`
searches trees of any size and leaves the copies out of the training images.

Frames of one video are alike, and say less than as many independent images. `--scenario-set
groups=REGEX` says which images belong together: those for which the expression's first group (or
the whole match) is the same on the path below the root, for instance `groups='(.*)_[0-9]+'`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fsdil_bench import (
    DataError,
    Domain,
    RequestError,
    Samples,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    describe_copies,
    drop_copies,
    file_samples,
    find_copies,
    hookimpl,
    is_image_name,
    numpy_generator,
    option,
)

from .names import read_names, read_synonyms
from .published.descriptors import DROPPING

_SEARCHED = 20_000  # trees of up to so many images are searched for copies without being asked


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `folder`."""
    return [
        ScenarioInfo(
            "folder",
            "your own images: a tree root/<domain>/<class>/<image> given with --data",
            "fsdil_scenarios.folder:build",
            needs_data=True,
            options="fsdil_scenarios.folder:Options",
        )
    ]


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    test_fraction: float = option(
        0.3,
        "fraction of the images of each domain and class to test on",
        minimum=0.01,
        maximum=0.99,
    )
    drop_duplicates: bool = option(False, DROPPING)
    groups: str = option(
        "", "regular expression on paths: images with the same match (a video) are one group"
    )


def build(request: ScenarioRequest) -> Stream:
    """The stream of the tree at `request.data`."""
    root = request.data
    assert root is not None
    pattern = _pattern(request.options.groups)
    domains = _folders(root, "domain")
    classes = sorted({folder.name for domain in domains for folder in _folders(domain, "class")})
    stream = Stream(
        name="folder",
        class_names=read_names(request.names, classes)
        if request.names
        else tuple(c.replace("_", " ") for c in classes),
        synonyms=read_synonyms(request.synonyms, classes) if request.synonyms else (),
        domains=tuple(
            _domain(d, root, classes, request.options.test_fraction, pattern) for d in domains
        ),
    )
    return drop_copies(stream) if request.options.drop_duplicates else _with_note_of_copies(stream)


def _with_note_of_copies(stream: Stream) -> Stream:
    """The stream with a note of its copies; the user gets a warning about them."""
    if sum(len(d.train) + len(d.test) for d in stream.domains) > _SEARCHED:
        return stream
    found = find_copies(stream)
    if not found:
        return stream
    _warn(
        f"{describe_copies(found)}; --scenario-set drop_duplicates=true leaves them out of the "
        "training images"
    )
    return replace(stream, notes={**stream.notes, "duplicates": len(found)})


@cache  # once per process, however many seeds it runs
def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _pattern(text: str) -> re.Pattern[str] | None:
    """The option `groups`, compiled."""
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise RequestError(
            f"the option groups is not a regular expression: {error}",
            "For instance --scenario-set groups='(.*)_[0-9]+' for <video>_<frame>.jpg.",
        ) from None


def _domain(
    folder: Path,
    root: Path,
    classes: list[str],
    test_fraction: float,
    pattern: re.Pattern[str] | None,
) -> Domain:
    train: list[tuple[Path, int]] = []
    test: list[tuple[Path, int]] = []
    for label, name in enumerate(classes):
        images = _images(folder / name)
        if len(images) < 2:
            raise DataError(
                f"domain '{folder.name}' has {len(images)} images of class '{name}'; "
                "one to learn from and one to test on are needed",
                f"Add images to {folder / name}, or remove that class from every domain.",
            )
        count = min(max(1, round(test_fraction * len(images))), len(images) - 1)
        # Fixed, not seeded by the run: every seed is tested on the same images.
        order = numpy_generator(0, "folder split", folder.name, name).permutation(len(images))
        test += [(images[i], label) for i in sorted(order[:count])]
        train += [(images[i], label) for i in sorted(order[count:])]
    return Domain(folder.name, _samples(train, root, pattern), _samples(test, root, pattern))


def _samples(files: list[tuple[Path, int]], root: Path, pattern: re.Pattern[str] | None) -> Samples:
    paths = [path.relative_to(root).as_posix() for path, _ in files]
    samples = file_samples(root, paths, [label for _, label in files])
    if pattern is None:
        return samples
    return replace(samples, groups=tuple(_group(path, pattern) for path in paths))


def _group(path: str, pattern: re.Pattern[str]) -> str:
    """What the expression says about a path; an image that does not match stays alone."""
    match = pattern.search(path)
    if match is None:
        return path
    return (match[1] or "") if pattern.groups else match[0]


def _folders(parent: Path, kind: str) -> list[Path]:
    if not parent.is_dir():
        raise DataError(
            f"'{parent}' is not a folder", "--data must name a tree root/<domain>/<class>/<image>."
        )
    found = sorted(p for p in parent.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not found:
        raise DataError(
            f"'{parent}' has no {kind} folders", "It must be a tree root/<domain>/<class>/<image>."
        )
    return found


def _images(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.rglob("*") if p.is_file() and is_image_name(p.name))
