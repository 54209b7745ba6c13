"""Where PACS comes from, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Outline, ScenarioRequest

from ..names import class_texts
from .findings import Findings
from .image_folders import find_images
from .image_lists import class_labels
from .pacs import CLASSES, DOMAINS, IMAGE_PLACES, TEST_FRACTION, list_place, read_lists

#: Images of each domain; 9,991 in all.
IMAGES = {"photo": 1670, "art_painting": 2048, "cartoon": 2344, "sketch": 3929}

SOURCE = DataSource(
    homepage="https://dali-dl.github.io/project_iccv2017.html",
    license="none stated",
    verify="fsdil_scenarios.published.pacs_source:verify",
    layout=(
        "<domain>/<class>/<image>",
        f"domains: {', '.join(DOMAINS)}",
        f"classes: {', '.join(CLASSES)}",
        "optional: <domain>_train_kfold.txt, <domain>_crossval_kfold.txt",
    ),
    manual=(
        "Open https://dali-dl.github.io/project_iccv2017.html and follow its link to the data set.",
        "Download the images and, for the official split, the text files called *_kfold.txt.",
        "Unpack the images into the folder named above and put the text files beside them.",
    ),
    size="0.2 GB",
    outline="fsdil_scenarios.published.pacs_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images PACS has in every domain, split as where there are no lists."""
    names, synonyms = class_texts("pacs", CLASSES, request.names, request.synonyms)
    tests = {domain: round(TEST_FRACTION * IMAGES[domain]) for domain in DOMAINS}
    return Outline(names, {d: (IMAGES[d] - test, test) for d, test in tests.items()}, synonyms)


def verify(root: Path) -> list[str]:
    """What is wrong with PACS at `root`, one line each."""
    try:
        place = find_images(root, DOMAINS, "pacs", IMAGE_PLACES)
        where = list_place(root, place)
        lists = read_lists(where) if where else {}
        class_labels(lists.values())
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    for domain, published in IMAGES.items():
        findings.only(domain, set(CLASSES))
        count = sum(len(findings.images(f"{domain}/{name}")) for name in CLASSES)
        findings.compare(domain, count, published)
    for each in lists.values():
        findings.listed(each.file.name, each.paths)
    return findings.lines()
