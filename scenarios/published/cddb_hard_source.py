"""Where CDDB comes from, and whether its five hard domains are all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Outline, ScenarioRequest

from ..names import class_texts
from .cddb_hard import CLASSES, PLACES, TRAINING, real_and_fake
from .findings import Findings
from .image_folders import find_images

#: Real and fake images of each domain, for training and for testing.
IMAGES = {
    "gaugan": {"train": (3000, 3000), "val": (1000, 1000)},
    "biggan": {"train": (1200, 1200), "val": (400, 400)},
    "wild": {"train": (3115, 3093), "val": (1019, 1044)},
    "whichfaceisreal": {"train": (600, 600), "val": (200, 200)},
    "san": {"train": (130, 130), "val": (45, 45)},
}

SOURCE = DataSource(
    homepage="https://github.com/Coral79/CDDB",
    license="none stated; made of data sets with terms of their own",
    verify="fsdil_scenarios.published.cddb_hard_source:verify",
    layout=(
        "<domain>/{train,val}/{0_real,1_fake}/<image>",
        "or <domain>/{train,val}/<category>/{0_real,1_fake}/<image>",
        f"domains: {', '.join(TRAINING)}",
        "for instance gaugan/train/0_real/<image>.png",
    ),
    manual=(
        "Open https://drive.google.com/file/d/1NgB8ytBMFBFwyXJQvdVT_yek1EaaEHrg/view (the link "
        '"CDDB Dataset" on https://github.com/Coral79/CDDB).',
        "Download the archive (about 10 GB) and unpack it into the folder named above.",
        f"Of the data set only {', '.join(TRAINING)} are needed.",
    ),
    size="10.4 GB",
    outline="fsdil_scenarios.published.cddb_hard_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images CDDB-Hard has in every domain."""
    names, synonyms = class_texts("cddb-hard", CLASSES, request.names, request.synonyms)
    images = {}
    for domain, parts in IMAGES.items():
        train = parts["train"] if request.variant == "balanced" else TRAINING[domain]
        images[domain] = (sum(train), sum(parts["val"]))
    return Outline(names, images, synonyms, "cddb")


def verify(root: Path) -> list[str]:
    """What is wrong with CDDB-Hard at `root`, one line each."""
    try:
        place = find_images(root, list(IMAGES), "cddb-hard", PLACES)
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    for domain, parts in IMAGES.items():
        for part, published in parts.items():
            found = real_and_fake(place / domain / part)
            for name, images, count in zip(CLASSES, found, published, strict=True):
                for folder in sorted({image.rpartition("/")[0] for image in images}):
                    findings.images(f"{domain}/{part}/{folder}")
                findings.compare(f"{domain}/{part}/{name}", len(images), count)
    return findings.lines()
