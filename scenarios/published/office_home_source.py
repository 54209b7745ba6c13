"""Where Office-Home comes from, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Outline, ScenarioRequest

from ..names import class_folders, class_texts
from .findings import Findings
from .image_folders import find_images
from .office_home import DOMAINS, IMAGE_PLACES, TEST_FRACTION, real_world

#: Images of each domain; 15,588 in all.
IMAGES = {"Real World": 4357, "Product": 4439, "Clipart": 4365, "Art": 2427}

SOURCE = DataSource(
    homepage="https://www.hemanthdv.org/officeHomeDataset.html",
    license="none; offered for research under a fair use notice",
    verify="fsdil_scenarios.published.office_home_source:verify",
    layout=(
        "<domain>/<class>/<image>.jpg",
        f"domains: {', '.join(DOMAINS)}",
        "for instance Real World/Alarm_Clock/00001.jpg",
    ),
    manual=(
        "Open https://www.hemanthdv.org/officeHomeDataset.html and follow its download link.",
        "Download the archive (about 1 GB) and unpack it into the folder named above.",
    ),
    size="1.2 GB",
    outline="fsdil_scenarios.published.office_home_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images Office-Home has in every domain."""
    classes = class_folders("office-home")
    names, synonyms = class_texts("office-home", classes, request.names, request.synonyms)
    tests = {domain: round(TEST_FRACTION * IMAGES[domain]) for domain in DOMAINS}
    return Outline(names, {d: (IMAGES[d] - test, test) for d, test in tests.items()}, synonyms)


def verify(root: Path) -> list[str]:
    """What is wrong with Office-Home at `root`, one line each."""
    try:
        place = find_images(root, DOMAINS[1:], "office-home", IMAGE_PLACES)
        spelling = real_world(place, root).name
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    folders = {name: name for name in DOMAINS} | {DOMAINS[0]: spelling}
    classes = class_folders("office-home")
    for name, folder in folders.items():
        findings.only(folder, set(classes))
        count = sum(len(findings.images(f"{folder}/{c}")) for c in classes)
        findings.compare(folder, count, IMAGES[name])
    return findings.lines()
