"""Finding the images of a published data set, and splitting them where no split is published.

Whatever is not as published is an error here, before anything is trained. The message names the
folder, how many are wrong, and what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from fsdil_bench import DataError, Domain, file_samples, image_names, numpy_generator


def remedy(data_set: str, data: Path) -> str:
    """What to do about images that are missing or not as published."""
    return (
        f"`fsdil-bench data verify {data_set} --data '{data}'` lists all that is wrong; "
        f"`fsdil-bench data get {data_set}` fetches the images or says how to get them."
    )


def find_images(
    data: Path, folders: Sequence[str], data_set: str, places: Sequence[str] = ()
) -> Path:
    """The folder with all of `folders` in it: `data`, or one of `places` below it."""
    if not data.is_dir():
        raise DataError(f"'{data}' is not a folder", remedy(data_set, data))
    candidates = [data, *(data / place for place in places)]
    root = max(candidates, key=lambda place: sum((place / each).is_dir() for each in folders))
    absent = [each for each in folders if not (root / each).is_dir()]
    if absent:
        raise DataError(
            f"'{root}' lacks {len(absent)} of the {len(folders)} folders of {data_set}: "
            f"{shortened(absent)}",
            remedy(data_set, data),
        )
    return root


def class_images(
    folder: Path, classes: Sequence[str], data_set: str, data: Path, least: int = 2
) -> list[list[str]]:
    """The names of the images of each class; a class with fewer than `least` is an error."""
    images = [image_names(folder / name) for name in classes]
    short = [f"{c} ({len(i)})" for c, i in zip(classes, images, strict=True) if len(i) < least]
    if short:
        raise DataError(
            f"{len(short)} of {len(classes)} classes have fewer than {least} images in '{folder}': "
            f"{shortened(short)}",
            remedy(data_set, data),
        )
    return images


def fixed_split(
    images: Sequence[str], test_fraction: float, version: int, *purpose: object
) -> tuple[list[str], list[str]]:
    """Training and test images, drawn once for all runs: the same on every machine and seed."""
    count = min(max(1, round(test_fraction * len(images))), len(images) - 1)
    order = numpy_generator(version, *purpose).permutation(len(images))
    test = set(order[:count].tolist())
    return (
        [image for i, image in enumerate(images) if i not in test],
        [image for i, image in enumerate(images) if i in test],
    )


def split_domain(
    name: str,
    folder: Path,
    classes: Sequence[str],
    test_fraction: float,
    version: int,
    data_set: str,
    data: Path,
    skip: Collection[str] = (),
) -> Domain:
    """The domain at `folder` (`<class>/<image>`), split in each class; ids begin with its name."""
    train: list[tuple[str, int]] = []
    test: list[tuple[str, int]] = []
    for label, images in enumerate(class_images(folder, classes, data_set, data)):
        paths = [f"{classes[label]}/{image}" for image in images]
        paths = [path for path in paths if f"{name}/{path}" not in skip]
        purpose = (f"{data_set} split", name, classes[label])
        for part, chosen in zip(
            (train, test), fixed_split(paths, test_fraction, version, *purpose), strict=True
        ):
            part += [(path, label) for path in chosen]
    return Domain(
        name,
        *(
            file_samples(
                folder, [path for path, _ in part], [label for _, label in part], f"{name}/"
            )
            for part in (train, test)
        ),
    )


def shortened(words: Sequence[str], limit: int = 5) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more
