"""Where ImageNet-C comes from, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataSource, Download, Outline, ScenarioRequest

from ..names import class_folders, class_texts
from .findings import Findings
from .imagenet_c import (
    ARCHIVES,
    CLEAN,
    CLEAN_FOLDER,
    CORRUPTIONS,
    TEST_FRACTION,
    find_corruption,
)

PER_CLASS = 50  # photographs, in every domain
SEVERITIES = range(1, 6)

#: Size and MD5 of each archive.
_PUBLISHED = {
    "noise": (22_565_673_785, "e80562d7f6c3f8834afb1ecf27252745"),
    "blur": (7_112_704_951, "2d8e81fdd8e07fef67b9334fa635e45c"),
    "weather": (12_797_438_995, "33ffea4db4d93fe4a428c40a6ce0c25d"),
    "digital": (7_757_510_705, "89157860d7b10d5797849337ca2e5c03"),
}

SOURCE = DataSource(
    homepage="https://github.com/hendrycks/robustness",
    license="CC BY 4.0; made of ImageNet's images, which have terms of their own",
    verify="fsdil_scenarios.published.imagenet_c_source:verify",
    layout=(
        "<corruption>/<severity>/<class>/<image>.JPEG",
        f"{CLEAN_FOLDER}/<class>/<image>.JPEG (the clean images; not for @corrupted)",
        "for instance fog/3/n01443537/ILSVRC2012_val_00000236.JPEG",
    ),
    downloads=tuple(
        Download(
            f"https://zenodo.org/record/2235448/files/{name}.tar",
            f"{name}.tar",
            unpack=".",
            size=_PUBLISHED[name][0],
            md5=_PUBLISHED[name][1],
        )
        for name in ARCHIVES
    ),
    manual=(
        "For clean images, get ImageNet's validation images from https://image-net.org "
        "(it asks for a registration).",
        f"Sort them into {CLEAN_FOLDER}/<class>/ in the folder named above; the folders of the 200 "
        "classes of ImageNet-R are enough.",
    ),
    outline="fsdil_scenarios.published.imagenet_c_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images of the 200 classes every domain has."""
    classes = class_folders("imagenet-r")
    names, synonyms = class_texts("imagenet-r", classes, request.names, request.synonyms)
    test = round(TEST_FRACTION * PER_CLASS)
    sizes = (len(classes) * (PER_CLASS - test), len(classes) * test)
    clean = () if request.variant == "corrupted" else (CLEAN,)
    return Outline(names, dict.fromkeys((*clean, *CORRUPTIONS), sizes), synonyms)


def verify(root: Path) -> list[str]:
    """What is wrong with ImageNet-C at `root`, one line each; only the 200 classes are checked."""
    findings = Findings(root)
    classes = class_folders("imagenet-r")
    for name in CORRUPTIONS:
        place = find_corruption(root, name)
        there = [level for level in SEVERITIES if (place / str(level)).is_dir()]
        if not there:
            findings.add("missing folders", f"{name}: no such folder, or none of a severity")
        elif len(there) < len(SEVERITIES):
            findings.remark(f"{name}: only severity {', '.join(map(str, there))}")
        for level in there:
            _compare(findings, (place / str(level)).relative_to(root).as_posix(), classes)
    if (root / CLEAN_FOLDER).is_dir():
        _compare(findings, CLEAN_FOLDER, classes)
    else:
        findings.remark(f"{CLEAN_FOLDER}: no clean images; only @corrupted can be run")
    return findings.lines()


def _compare(findings: Findings, place: str, classes: tuple[str, ...]) -> None:
    count = sum(len(findings.images(f"{place}/{name}")) for name in classes)
    findings.compare(place, count, PER_CLASS * len(classes))
