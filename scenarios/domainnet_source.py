"""Where DomainNet and the lists of DN4IL come from, and whether they are all there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from fsdil_bench import DataError, DataSource, Download, missing_files

from .domainnet import (
    CLASSES,
    DOMAINS,
    DROPPED,
    IMAGE_PLACES,
    list_place,
    read_lists,
    too_few,
)
from .image_lists import ImageList, class_labels
from .published import find_images, shortened
from .verifying import Findings

#: Training and test images in the lists of the cleaned version.
IMAGES = {
    "real": (120906, 52041),
    "painting": (50416, 21850),
    "clipart": (33525, 14604),
    "sketch": (48212, 20916),
    "quickdraw": (120750, 51750),
    "infograph": (36023, 15582),
}

_SERVER = "http://csr.bu.edu/ftp/visda/2019/multi-source"
_CLEANED = ("clipart", "painting")  # their cleaned archives lie in a folder of their own
_DN4IL = (
    "https://raw.githubusercontent.com/NeurAI-Lab/DN4IL-dataset/"
    "9227378338caf080eff2e5a87f2bca4bea12b98a"
)
_LISTS = [f"{domain}_{part}.txt" for domain in DOMAINS for part in ("train", "test")]
_ARCHIVES = tuple(
    Download(
        f"{_SERVER}/{'groundtruth/' if domain in _CLEANED else ''}{domain}.zip",
        f"{domain}.zip",
        unpack=".",
    )
    for domain in DOMAINS
)
_LICENSE = "none; offered for research under a fair use notice"
_LAYOUT = (
    "<domain>/<class>/<image>.jpg",
    f"domains: {', '.join(DOMAINS)}",
    "for instance real/aircraft_carrier/real_001_000001.jpg",
)

SOURCE = DataSource(
    homepage="http://ai.bu.edu/M3SDA/",
    license=_LICENSE,
    verify="fsdil_scenarios.domainnet_source:verify",
    layout=(*_LAYOUT, "<domain>_train.txt", "<domain>_test.txt"),
    downloads=(
        *(Download(f"{_SERVER}/domainnet/txt/{name}", name) for name in _LISTS),
        *_ARCHIVES,
    ),
    size="18 GB",
)

DN4IL_SOURCE = DataSource(
    homepage="https://github.com/NeurAI-Lab/DN4IL-dataset",
    license=f"{_LICENSE} (images), MIT (lists)",
    verify="fsdil_scenarios.domainnet_source:verify_dn4il",
    layout=(*_LAYOUT, "dn4il/<domain>_train.txt", "dn4il/<domain>_test.txt"),
    downloads=(*(Download(f"{_DN4IL}/{name}", f"dn4il/{name}") for name in _LISTS), *_ARCHIVES),
    size="18 GB",
    folder="domainnet",
)


def verify(root: Path) -> list[str]:
    """What is wrong with DomainNet at `root`, one line each."""
    try:
        place = find_images(root, DOMAINS, "domainnet", IMAGE_PLACES)
        lists = read_lists(list_place(root, place, "domainnet"))
        labels = class_labels(lists.values())
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    if len(labels) != CLASSES:
        findings.add("classes", f"the lists name {len(labels)} classes, {CLASSES} are published")
    for domain, counts in IMAGES.items():
        for part, published in zip(("train", "test"), counts, strict=True):
            findings.compare(f"{domain}_{part}.txt", len(lists[domain, part].paths), published)
    dropped = too_few(lists, labels)
    if dropped != set(DROPPED):
        differing = shortened(sorted(dropped ^ set(DROPPED)), 10)
        findings.add(
            "classes",
            f"{len(dropped)} classes have too few images in some list, in the paper "
            f"{len(DROPPED)}; they differ in {differing}",
        )
    _look_through(findings, lists, set(labels))
    return findings.lines()


def verify_dn4il(root: Path) -> list[str]:
    """What is wrong with DN4IL at `root`, one line each."""
    from .names import dn4il_folders

    wanted = set(dn4il_folders())
    try:
        place = find_images(root, DOMAINS, "dn4il", IMAGE_PLACES)
        lists = read_lists(list_place(root, place, "dn4il"))
        labels = class_labels(lists.values())
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    absent = sorted(wanted - set(labels))
    if absent:
        findings.add("classes", f"{len(absent)} classes are in no list: {shortened(absent, 10)}")
    elif len(labels) > len(wanted):
        findings.add(
            "lists",
            "no lists of DN4IL in a folder 'dn4il': all images of its classes would be used, not "
            "the published part of them",
        )
    _look_through(findings, lists, wanted)
    return findings.lines()


def _look_through(
    findings: Findings, lists: Mapping[tuple[str, str], ImageList], classes: Collection[str]
) -> None:
    """Note files that the lists name and that are not there, and damaged ones."""
    for domain in DOMAINS:
        for name in sorted(classes):
            if (findings.root / domain / name).is_dir():
                findings.images(f"{domain}/{name}")
    for each in lists.values():
        paths = [
            path
            for path, folder in zip(each.paths, each.folders, strict=True)
            if folder.rpartition("/")[2] in classes
        ]
        absent = missing_files(findings.root, paths)
        if absent:
            findings.add(
                "missing files",
                f"{each.file.name}: {len(absent)} of {len(paths)} images are not there: "
                f"{shortened(absent, 3)}",
            )
