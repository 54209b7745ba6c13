"""The `cddb-hard` scenario: real or fake? Five makers of images, one after the other (CDDB-Hard).

    fsdil-bench run --method cvlc --scenario cddb-hard-4shot --data ~/CDDB

The images are `<domain>/{train,val}/{0_real,1_fake}/<image>`; an additional folder (an object
category) above `0_real` and `1_fake`, as CDDB has in places, is accepted. `val` is the test set.

The paper trains on unbalanced parts of the training folders, above all in the base domain (3000
fake and 300 real images). The data set has no lists of them, so parts of the same sizes are drawn
here, once for all runs. `@balanced` uses all training images.

The images of `wild` are frames of videos. Where file names have a number of the video before that
of the frame (`12_345.png`), the frames of one video are one group: intervals count videos.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fsdil_bench import (
    DataError,
    Domain,
    Samples,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    file_samples,
    hookimpl,
    image_names,
    numpy_generator,
)

from .descriptors import as_asked, published_scenario
from .image_folders import find_images, remedy

CLASSES = ("0_real", "1_fake")
PLACES = ("CDDB", "cddb", "CDDB-Hard")  # folders that the images may lie in, below --data

#: The domains in order, and how many real and fake images the paper trains on.
TRAINING = {
    "gaugan": (300, 3000),
    "biggan": (1200, 240),
    "wild": (3115, 310),
    "whichfaceisreal": (120, 600),
    "san": (130, 130),
}
#: The domain of video frames, and the part of a path that names the video.
FILMED = "wild"
VIDEO = re.compile(r"(.*/[^/]*\d[^/]*)[_-]\d+\.[^./]+")

DRAW_VERSION = 1  # a different number draws different parts: every result changes


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `cddb-hard`."""
    return [
        published_scenario(
            "cddb-hard",
            "real and fake images from five sources (CDDB-Hard)",
            tuple(TRAINING),
            len(CLASSES),
            "cddb_hard",
            variants={"balanced": "all training images instead of the paper's unbalanced part"},
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The five sources as domains."""
    from ..names import class_texts

    data = request.data
    assert data is not None
    root = find_images(data, list(TRAINING), "cddb-hard", PLACES)
    class_names, synonyms = class_texts("cddb-hard", CLASSES, request.names, request.synonyms)
    balanced = request.variant == "balanced"
    shortfall: dict[str, str] = {}
    domains = []
    for name, sizes in TRAINING.items():
        train = _images(root, name, "train", data)
        if not balanced:
            train = [
                _part(*each, name, shortfall) for each in zip(train, sizes, CLASSES, strict=True)
            ]
        domains.append(
            Domain(name, _samples(root, train), _samples(root, _images(root, name, "val", data)))
        )
    stream = Stream(
        name="cddb-hard",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(domains),
        transform="cddb",
        notes={
            "training_part": "all" if balanced else f"draw {DRAW_VERSION}",
            **({"smaller_than_published": shortfall} if shortfall else {}),
        },
    )
    return as_asked(stream, request)


def real_and_fake(folder: Path) -> list[list[str]]:
    """The real and the fake images below a training or test folder, as paths from there.

    `0_real` and `1_fake` lie in the folder itself, in folders of categories, or in both.
    """
    if not folder.is_dir():
        return [[] for _ in CLASSES]
    inner = sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name not in CLASSES)
    above = ["", *(f"{category}/" for category in inner)]
    return [
        [f"{place}{c}/{image}" for place in above for image in image_names(folder / place / c)]
        for c in CLASSES
    ]


def _images(root: Path, domain: str, part: str, data: Path) -> list[list[str]]:
    found = real_and_fake(root / domain / part)
    for name, images in zip(CLASSES, found, strict=True):
        if not images:
            raise DataError(
                f"'{root / domain / part}' has 0 images in folders {name}",
                remedy("cddb-hard", data),
            )
    return [[f"{domain}/{part}/{image}" for image in images] for images in found]


def _part(
    images: list[str], size: int, label: str, domain: str, shortfall: dict[str, str]
) -> list[str]:
    """`size` of the images, or all where there are fewer; that is noted in `shortfall`."""
    if len(images) < size:
        shortfall[f"{domain}/{label}"] = f"{len(images)} of {size}"
        return images
    order = numpy_generator(DRAW_VERSION, "cddb-hard train", domain, label).permutation(len(images))
    return [images[i] for i in sorted(order[:size])]


def _samples(root: Path, images: Sequence[Sequence[str]]) -> Samples:
    paths = [path for each in images for path in each]
    labels = [label for label, each in enumerate(images) for _ in each]
    return replace(file_samples(root, paths, labels), groups=_videos(paths))


def _videos(paths: Sequence[str]) -> tuple[str, ...]:
    """The video of each frame; nothing where no file name tells it."""
    known = [VIDEO.fullmatch(path) if path.startswith(f"{FILMED}/") else None for path in paths]
    if not any(known):
        return ()
    return tuple(match[1] if match else path for match, path in zip(known, paths, strict=True))
