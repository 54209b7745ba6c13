"""Where ImageNet-R comes from, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Download

from ..names import class_folders
from .findings import Findings
from .image_folders import find_images
from .imagenet_r import IMAGE_PLACES

IMAGES = 30_000

SOURCE = DataSource(
    homepage="https://github.com/hendrycks/imagenet-r",
    license="none stated; made of images with terms of their own",
    verify="fsdil_scenarios.published.imagenet_r_source:verify",
    layout=(
        "imagenet-r/<class>/<rendition>_<number>.jpg",
        "for instance imagenet-r/n01443537/art_0.jpg",
    ),
    downloads=(
        Download(
            "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
            "imagenet-r.tar",
            unpack=".",
            md5="a61312130a589d0ca1a8fca1f2bd3337",
        ),
    ),
    size="2.2 GB",
)


def verify(root: Path) -> list[str]:
    """What is wrong with ImageNet-R at `root`, one line each."""
    classes = class_folders("imagenet-r")
    try:
        place = find_images(root, classes, "imagenet-r", IMAGE_PLACES)
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    findings.only(".", set(classes))
    count = 0
    for folder in classes:
        names = findings.images(folder)
        count += len(names)
        strange = [name for name in names if "_" not in name]
        if strange:
            findings.add(
                "other names", f"{folder}: {len(strange)} images are not called "
                f"<rendition>_<number>, for instance {strange[0]}"
            )  # fmt: skip
    findings.compare("all classes", count, IMAGES)
    return findings.lines()
