"""Where DomainNet and the lists of DN4IL come from, and whether they are all there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fsdil_bench import DataError, DataSource, Download, Outline, ScenarioRequest

from ..names import class_folders, class_texts, dn4il_folders
from .domainnet import (
    CLASSES,
    DOMAINS,
    DROPPED,
    IMAGE_PLACES,
    list_place,
    read_lists,
    too_few,
)
from .findings import Findings
from .image_folders import find_images, shortened
from .image_lists import ImageList, class_labels

#: Training and test images in the lists of the cleaned version.
IMAGES = {
    "real": (120906, 52041),
    "painting": (50416, 21850),
    "clipart": (33525, 14604),
    "sketch": (48212, 20916),
    "quickdraw": (120750, 51750),
    "infograph": (36023, 15582),
}

#: SHA-256 of the official lists, as far as known.
LIST_SHA256 = {
    "real_test.txt": "2b3f75bcde309aeb5931292084b2162e936b5f189e3bb1ad716f0f74c460864c",
    "painting_train.txt": "f1da38d50a702fddf1329f85bc607d7a2abcae7e6aec75e1fd49cc1bd340d47b",
    "painting_test.txt": "11472b13b5188e09f06918b12eebb660588c97a20e43e268d9b02e3e37eb8f97",
    "clipart_train.txt": "affdadf5f95a7583e6b98030a3d35007e2613ee4dd942393c5a705ec2b429312",
    "clipart_test.txt": "62c8e36aaba1c41ad9e249099739707220a44c08f167b37ef420f34a31628a6b",
    "sketch_train.txt": "72f4bc6afa5702a1ccba800d0053c1427de87439dfaf246dbc9a2e71abfec54f",
    "sketch_test.txt": "3fb48fca18c507c4321f007c3f62b308ec232ff6928cbfe2af64e76ec366e840",
    "quickdraw_test.txt": "2a00a60650a453c65c356da748fec54084a197272137c440e7d52d08947357bf",
    "infograph_train.txt": "36b44cbd41a2915e0dc73b4f4be8862a6f3c220f93c8d63fb2439beeae3aefda",
    "infograph_test.txt": "413cfa54ac92e7e6b242f4f09fbd9c8ace85c4deaf3cb6c81ff6b68264460136",
}
#: SHA-256 of the lists of DN4IL.
DN4IL_SHA256 = {
    "real_train.txt": "a52a94a88ff117fc04525c3d356c3fb2f28409c7c6d26e1086ea418e053c06ab",
    "real_test.txt": "07f24e50549a20800ed94ac621011c996167884d7b5be8186efb7112f1f31090",
    "painting_train.txt": "830127748649735cf2d45e35320a613f7902b0b8cb01b489e432fe3813804a37",
    "painting_test.txt": "f09d3442ae465884a01fc1946913ebc0ce7031ae110a6d9205e6063c4d7c27f6",
    "clipart_train.txt": "fda015579f50f77c69ab43c29b559c16758d14c0db740fc1a7a2aca3b173779f",
    "clipart_test.txt": "7d7cca715efe908014f0b38442be9bf3f3128ec1f27609bc76ae416b1b3fe824",
    "sketch_train.txt": "8296471b222e281384622f9363acb89348d510c5a9f87a89215aa657a4ffafb1",
    "sketch_test.txt": "238274444a8a754267e0f24ea805b907a34a15207455c287fdde8ef8d1de3f9d",
    "quickdraw_train.txt": "255f768b0f35839152146bae90568a3f073e10a303866169b86f51bebff6eed9",
    "quickdraw_test.txt": "a1495242b6ca1770f5bf98c9480bc88b7d491eecb89b58511181ae50e0bcdf4e",
    "infograph_train.txt": "c2c8ee77fb9637d99f1eaefa22c9d81563a1ad6442e3cb3a595b3aa02e41f118",
    "infograph_test.txt": "0ff3c344e4d738cd8d7776e5c59a584cc10fcdae37eee36371d391cd61579320",
}

Lists = Mapping[tuple[str, str], ImageList]  # by domain and part

_SERVER = "csr.bu.edu/ftp/visda/2019/multi-source"
_CLEANED = ("clipart", "painting")  # their cleaned archives lie in a folder of their own
_DN4IL = (
    "https://raw.githubusercontent.com/NeurAI-Lab/DN4IL-dataset/"
    "9227378338caf080eff2e5a87f2bca4bea12b98a"
)
_LISTS = [f"{domain}_{part}.txt" for domain in DOMAINS for part in ("train", "test")]


def _from_server(place: str, path: str, unpack: str | None = None, sha256: str = "") -> Download:
    """A file of DomainNet's server, which answers over https, but at times only over http."""
    url, plain = f"https://{_SERVER}/{place}", f"http://{_SERVER}/{place}"
    return Download(url, path, unpack=unpack, sha256=sha256, also=(plain,))


_ARCHIVES = tuple(
    _from_server(
        f"{'groundtruth/' if domain in _CLEANED else ''}{domain}.zip", f"{domain}.zip", unpack="."
    )
    for domain in DOMAINS
)
_LICENSE = "none; offered for research under a fair use notice"
_LAYOUT = (
    "<domain>/<class>/<image>.jpg, in quickdraw .png",
    f"domains: {', '.join(DOMAINS)}",
    "for instance real/aircraft_carrier/real_001_000001.jpg",
)

SOURCE = DataSource(
    homepage="http://ai.bu.edu/M3SDA/",
    license=_LICENSE,
    verify="fsdil_scenarios.published.domainnet_source:verify",
    layout=(*_LAYOUT, "<domain>_train.txt", "<domain>_test.txt"),
    downloads=(
        *(
            _from_server(f"domainnet/txt/{name}", name, sha256=LIST_SHA256.get(name, ""))
            for name in _LISTS
        ),
        *_ARCHIVES,
    ),
    size="18 GB",
    outline="fsdil_scenarios.published.domainnet_source:outline",
)

DN4IL_SOURCE = DataSource(
    homepage="https://github.com/NeurAI-Lab/DN4IL-dataset",
    license=f"{_LICENSE} (images), MIT (lists)",
    verify="fsdil_scenarios.published.domainnet_source:verify_dn4il",
    layout=(*_LAYOUT, "dn4il/<domain>_train.txt", "dn4il/<domain>_test.txt"),
    downloads=(
        *(
            Download(f"{_DN4IL}/{name}", f"dn4il/{name}", sha256=DN4IL_SHA256[name])
            for name in _LISTS
        ),
        *_ARCHIVES,
    ),
    size="18 GB",
    folder="domainnet",
    outline="fsdil_scenarios.published.domainnet_source:outline_dn4il",
)


def outline(request: ScenarioRequest) -> Outline:
    """About how many images DomainNet has in every domain without the classes that are dropped.

    The lists of all 345 classes are counted; the 306 that stay have their share of the images.
    """
    kept = [name for name in class_folders("domainnet") if name not in DROPPED]
    return _outline(request, kept)


def outline_dn4il(request: ScenarioRequest) -> Outline:
    """At most how many images DN4IL has: its own lists name fewer than DomainNet's."""
    return _outline(request, dn4il_folders())


def _outline(request: ScenarioRequest, kept: Sequence[str]) -> Outline:
    names, synonyms = class_texts("domainnet", kept, request.names, request.synonyms)
    share = len(kept) / CLASSES
    images = {
        domain: (round(share * train), round(share * test))
        for domain, (train, test) in IMAGES.items()
    }
    return Outline(names, images, synonyms, "domainnet")


def verify(root: Path) -> list[str]:
    """What is wrong with DomainNet at `root`, one line each."""
    try:
        findings, place, lists = _find(root, "domainnet")
        labels = class_labels(lists.values())
    except DataError as error:
        return [error.message]
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
    findings.checksums(place, LIST_SHA256)
    _check_files(findings, lists, set(labels))
    return findings.lines()


def verify_dn4il(root: Path) -> list[str]:
    """What is wrong with DN4IL at `root`, one line each."""
    wanted = set(dn4il_folders())
    try:
        findings, place, lists = _find(root, "dn4il")
        labels = class_labels(lists.values())
    except DataError as error:
        return [error.message]
    absent = sorted(wanted - set(labels))
    if absent:
        findings.add("classes", f"{len(absent)} classes are in no list: {shortened(absent, 10)}")
    elif len(labels) > len(wanted):
        findings.add(
            "lists",
            "no lists of DN4IL in a folder 'dn4il': all images of its classes would be used, not "
            "the published part of them",
        )
    else:
        findings.checksums(place, DN4IL_SHA256)
    _check_files(findings, lists, wanted)
    return findings.lines()


def _find(root: Path, data_set: str) -> tuple[Findings, Path, Lists]:
    """Findings on the folder with the domains, the place of the lists, and the lists."""
    images = find_images(root, DOMAINS, data_set, IMAGE_PLACES)
    place = list_place(root, images, data_set)
    return Findings(images), place, read_lists(place)


def _check_files(findings: Findings, lists: Lists, classes: Collection[str]) -> None:
    """Note listed files that are missing, and files that are damaged."""
    for domain in DOMAINS:
        for name in sorted(classes):
            if (findings.root / domain / name).is_dir():
                findings.images(f"{domain}/{name}")
    for each in lists.values():
        findings.listed(each.file.name, each.of_classes(sorted(classes))[0])
