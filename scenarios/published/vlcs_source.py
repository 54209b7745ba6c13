"""Where VLCS comes from, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Outline, ScenarioRequest

from ..names import class_texts
from .findings import Findings
from .image_folders import find_images
from .vlcs import CLASSES, DOMAINS, IMAGE_PLACES, TEST_FRACTION

#: Images of each domain; 10,729 in all.
IMAGES = {"VOC2007": 3376, "LabelMe": 2656, "SUN09": 3282, "Caltech101": 1415}

SOURCE = DataSource(
    homepage="https://github.com/facebookresearch/DomainBed",
    license="none stated; made of data sets with terms of their own",
    verify="fsdil_scenarios.published.vlcs_source:verify",
    layout=(
        "<domain>/<class>/<image>.jpg",
        f"domains: {', '.join(DOMAINS)}",
        f"classes: {', '.join(CLASSES)}",
    ),
    manual=(
        "Open https://github.com/facebookresearch/DomainBed: its program for downloads names the "
        "archive of VLCS on Google Drive, VLCS.tar.gz.",
        "Download the archive and unpack it into the folder named above.",
        "No checksum is known here: the numbers of images are checked.",
    ),
    outline="fsdil_scenarios.published.vlcs_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images VLCS has in every domain."""
    names, synonyms = class_texts("vlcs", CLASSES, request.names, request.synonyms)
    tests = {domain: round(TEST_FRACTION * IMAGES[domain]) for domain in DOMAINS}
    return Outline(names, {d: (IMAGES[d] - test, test) for d, test in tests.items()}, synonyms)


def verify(root: Path) -> list[str]:
    """What is wrong with VLCS at `root`, one line each."""
    try:
        place = find_images(root, DOMAINS, "vlcs", IMAGE_PLACES)
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    for domain, published in IMAGES.items():
        findings.only(domain, set(CLASSES))
        count = sum(len(findings.images(f"{domain}/{name}")) for name in CLASSES)
        findings.compare(domain, count, published)
    return findings.lines()
