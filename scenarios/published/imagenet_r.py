"""The `imagenet-r` scenario: ImageNet's classes as art, cartoons, toys and so on (ImageNet-R).

    fsdil-bench run --method cvlc --scenario imagenet-r-4shot --data ~/imagenet-r

The images are `<class>/<rendition>_<number>.jpg` for 200 classes. A domain is a rendition: the part
of the file name before the underscore. Not every rendition has images of every class, and a stream
needs all classes in all domains. So renditions are taken from the largest on, each as long as
enough classes (option `classes`) have enough images (option `images`) in all that were taken. The
classes are those that are left. All of it follows from the published archive alone. `renditions`
names other ones, for instance `--scenario-set renditions=sketch,painting`.

The largest rendition comes first. ImageNet's own photographs would be the natural base, but they
are not in the archive and may not be passed on.

No split is published: 30 % of the images of every domain and class, drawn once for all runs, are
the test set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench import (
    DataError,
    Domain,
    RequestError,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    file_samples,
    hookimpl,
    image_names,
    option,
)

from .descriptors import BACKBONE, DROPPING, as_asked
from .image_folders import find_images, fixed_split, remedy

IMAGE_PLACES = ("imagenet-r", "ImageNet-R")

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.3

#: Image names by class, by rendition.
Renditions = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    images: int = option(6, "least number of images of a class in every domain", minimum=2)
    classes: int = option(50, "least number of classes that a further domain must leave", minimum=2)
    renditions: str = option("", "the domains, with commas between them, instead of that rule")
    drop_duplicates: bool = option(False, DROPPING)


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `imagenet-r`."""
    return [
        ScenarioInfo(
            "imagenet-r",
            "ImageNet's classes as art, cartoons, sketches, toys and so on (ImageNet-R)",
            "fsdil_scenarios.published.imagenet_r:build",
            default_backbone=BACKBONE,
            needs_data=True,
            options="fsdil_scenarios.published.imagenet_r:Options",
            source="fsdil_scenarios.published.imagenet_r_source:SOURCE",
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The renditions as domains."""
    from ..names import class_folders, class_texts

    data, options = request.data, request.options
    assert data is not None
    folders = class_folders("imagenet-r")
    root = find_images(data, folders, "imagenet-r", IMAGE_PLACES)
    found = renditions(root, folders)
    names, classes = chosen(found, folders, options)
    if len(classes) < 2:
        raise DataError(
            f"{len(classes)} classes have {options.images} images in each of the domains "
            f"{', '.join(names)} of '{root}'",
            "Ask for fewer --scenario-set images, for other renditions, or check the data: "
            + remedy("imagenet-r", data),
        )
    class_names, synonyms = class_texts("imagenet-r", classes, request.names, request.synonyms)
    stream = Stream(
        name="imagenet-r",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(_domain(name, found[name], classes, root) for name in names),
        notes={"split": f"draw {SPLIT_VERSION}"},
    )
    return as_asked(stream, request)


def renditions(root: Path, folders: Sequence[str]) -> Renditions:
    """The images of every rendition and class, by what their names begin with."""
    found: dict[str, dict[str, list[str]]] = {}
    for folder in folders:
        for name in image_names(root / folder):
            rendition, mark, _ = name.partition("_")
            if mark:
                found.setdefault(rendition, {}).setdefault(folder, []).append(name)
    return found


def chosen(
    found: Renditions, folders: Sequence[str], options: Options
) -> tuple[list[str], list[str]]:
    """The renditions that become domains, the largest first, and the classes of all of them."""
    asked = [name.strip() for name in options.renditions.split(",") if name.strip()]
    absent = [name for name in asked if name not in found]
    if absent or len(set(asked)) < len(asked):
        raise RequestError(
            f"ImageNet-R has no rendition '{absent[0]}'"
            if absent
            else "the option renditions names one twice",
            f"There are: {', '.join(sorted(found))}.",
        )
    by_size = sorted(found, key=lambda name: (-sum(map(len, found[name].values())), name))
    names: list[str] = []
    classes = list(folders)
    for name in asked or by_size:
        left = [c for c in classes if len(found[name].get(c, ())) >= options.images]
        if asked or len(left) >= options.classes:
            names.append(name)
            classes = left
    return names, classes if names else []


def _domain(
    name: str, images: Mapping[str, Sequence[str]], classes: Sequence[str], root: Path
) -> Domain:
    train: list[tuple[str, int]] = []
    test: list[tuple[str, int]] = []
    for label, folder in enumerate(classes):
        purpose = ("imagenet-r split", name, folder)
        split = fixed_split(images[folder], TEST_FRACTION, SPLIT_VERSION, *purpose)
        for part, those in zip((train, test), split, strict=True):
            part += [(f"{folder}/{image}", label) for image in those]
    return Domain(
        name,
        *(file_samples(root, [p for p, _ in part], [y for _, y in part]) for part in (train, test)),
    )
