"""The `imagenet-c` scenario: clean photographs, then 15 corruptions of them (ImageNet-C).

    fsdil-bench run --method ncm --scenario imagenet-c-4shot --data ~/imagenet-c

The images are `<corruption>/<severity>/<class>/<image>.JPEG`; `--scenario-set severity=3` says how
strong the corruptions are. Clean photographs come first: ImageNet's validation images as
`val/<class>/<image>.JPEG`, which everybody has to get from ImageNet. `@corrupted` does without
them and begins with the first corruption.

The classes are the 200 of ImageNet-R, with its names and synonyms.

All domains show the same photographs. So the test set is drawn by photograph, 30 % of each class
once for all runs: a photograph that is tested in one domain is learned in none. The images of one
photograph are one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    option,
)

from .descriptors import DROPPING, as_asked, published_scenario
from .image_folders import class_images, fixed_split, remedy, shortened

#: The corruptions in the order of the paper, by the archive that holds them.
ARCHIVES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
CORRUPTIONS = tuple(name for names in ARCHIVES.values() for name in names)
CLEAN = "clean"
CLEAN_FOLDER = "val"
PLACES = ("", "imagenet-c", "ImageNet-C", "Imagenet-C")

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.3


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    severity: int = option(3, "strength of the corruptions", minimum=1, maximum=5)
    drop_duplicates: bool = option(False, DROPPING)


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `imagenet-c`."""
    return [
        published_scenario(
            "imagenet-c",
            "200 classes of ImageNet, clean and under 15 corruptions (ImageNet-C)",
            (CLEAN, *CORRUPTIONS),
            200,
            "imagenet_c",
            options="fsdil_scenarios.published.imagenet_c:Options",
            variants={"corrupted": "without clean photographs, which are not in the archives"},
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """Clean photographs and the corruptions as domains."""
    from ..names import class_folders, class_texts

    data = request.data
    assert data is not None
    classes = class_folders("imagenet-r")
    class_names, synonyms = class_texts("imagenet-r", classes, request.names, request.synonyms)
    folders = find_folders(data, request.options.severity, request.variant != "corrupted")
    images = {
        name: class_images(folder, classes, "imagenet-c", data) for name, folder in folders.items()
    }
    photographs = next(iter(images.values()))
    for name, those in images.items():
        different = [c for c, a, b in zip(classes, those, photographs, strict=True) if a != b]
        if different:
            raise DataError(
                f"'{folders[name]}' has other images than '{next(iter(folders.values()))}' in "
                f"{len(different)} classes: {shortened(different)}",
                "All domains must show the same photographs. " + remedy("imagenet-c", data),
            )
    parts = split(photographs, classes)
    stream = Stream(
        name="imagenet-c",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(
            Domain(name, *(_samples(name, folder, part, classes) for part in parts))
            for name, folder in folders.items()
        ),
        notes={"split": f"draw {SPLIT_VERSION}", "severity": request.options.severity},
    )
    return as_asked(stream, request)


def find_folders(data: Path, severity: int, clean: bool) -> dict[str, Path]:
    """The folder with the classes, for every domain."""
    folders = {}
    if clean:
        folders[CLEAN] = data / CLEAN_FOLDER
        if not folders[CLEAN].is_dir():
            raise DataError(
                f"'{folders[CLEAN]}' is not there: the clean validation images of ImageNet",
                "Put them there as <class>/<image>.JPEG, or do without them: "
                "--scenario imagenet-c-<K>shot@corrupted.",
            )
    for name in CORRUPTIONS:
        folders[name] = find_corruption(data, name) / str(severity)
    absent = [str(folder) for folder in folders.values() if not folder.is_dir()]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(folders)} folders are not there: {shortened(absent, 2)}",
            remedy("imagenet-c", data),
        )
    return folders


def find_corruption(data: Path, name: str) -> Path:
    """The folder of a corruption: below the root, or in one with the name of its archive."""
    archive = next(archive for archive, names in ARCHIVES.items() if name in names)
    for place in PLACES:
        for folder in (data / place / name, data / place / archive / name):
            if folder.is_dir():
                return folder
    return data / name


def split(
    photographs: Sequence[Sequence[str]], classes: Sequence[str]
) -> tuple[list[list[str]], list[list[str]]]:
    """The photographs of each class for training and for testing."""
    train, test = [], []
    for names, folder in zip(photographs, classes, strict=True):
        parts = fixed_split(names, TEST_FRACTION, SPLIT_VERSION, "imagenet-c split", folder)
        train.append(parts[0])
        test.append(parts[1])
    return train, test


def _samples(
    domain: str, folder: Path, images: Sequence[Sequence[str]], classes: Sequence[str]
) -> Samples:
    paths = [f"{c}/{name}" for c, names in zip(classes, images, strict=True) for name in names]
    labels = [label for label, names in enumerate(images) for _ in names]
    return replace(file_samples(folder, paths, labels, f"{domain}/"), groups=tuple(paths))
