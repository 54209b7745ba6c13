"""The `pacs` scenario: seven classes as photos, paintings, cartoons and sketches (PACS).

    fsdil-bench run --method cvlc --scenario pacs-4shot --data ~/pacs

The images are `<domain>/<class>/<image>`, in the folder that `--data` names or in `pacs_data`,
`kfold` or `images` inside it. Where the official lists `<domain>_train_kfold.txt` and
`<domain>_crossval_kfold.txt` lie beside them (or in `pacs_label` or `splits`), the first are the
training and the second the test images. The official `<domain>_test_kfold.txt` hold all images,
those for training included, and are not used. Without the lists 30 % of the images of every domain
and class, drawn once for all runs, are the test set. The record says which split it was.

Photos come first, as what CLIP and the base domain know best, and sketches, the farthest from them,
last.
"""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import (
    DataError,
    Domain,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    file_samples,
    hookimpl,
)

from .descriptors import as_asked, published_scenario
from .image_folders import find_images, shortened, split_domain
from .image_lists import ImageList, check_listed, class_labels, find_lists, read_list

DOMAINS = ("photo", "art_painting", "cartoon", "sketch")
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
IMAGE_PLACES = ("pacs_data", "kfold", "images", "PACS", "PACS/kfold", "pacs/images")
LIST_PLACES = ("", "pacs_label", "splits", "Train val splits and h5py files pre-read")
PARTS = ("train", "crossval")

#: Named by the official lists, but damaged in the published archive.
BROKEN = frozenset({"sketch/dog/n02103406_4068-1.png"})

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.3


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `pacs`."""
    return [
        published_scenario(
            "pacs",
            "seven classes as photos, paintings, cartoons and sketches (PACS)",
            DOMAINS,
            len(CLASSES),
            "pacs",
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The four domains, split by the official lists where these are there."""
    from ..names import class_texts

    data = request.data
    assert data is not None
    root = find_images(data, DOMAINS, "pacs", IMAGE_PLACES)
    class_names, synonyms = class_texts("pacs", CLASSES, request.names, request.synonyms)
    place = list_place(data, root)
    if place is None:
        split = (TEST_FRACTION, SPLIT_VERSION)
        domains = [
            split_domain(name, root / name, CLASSES, *split, "pacs", data, skip=BROKEN)
            for name in DOMAINS
        ]
    else:
        domains = _listed_domains(root, place, data)
    stream = Stream(
        name="pacs",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(domains),
        notes={"split": f"draw {SPLIT_VERSION}" if place is None else "official lists"},
    )
    return as_asked(stream, request)


def list_place(data: Path, root: Path) -> Path | None:
    """The folder with the official lists, if they are there."""
    names = [f"{domain}_{part}_kfold.txt" for domain in DOMAINS for part in PARTS]
    places = [start / inner for start in (data, root, root.parent) for inner in LIST_PLACES]
    return find_lists(places, names, "pacs", data)


def read_lists(place: Path) -> dict[tuple[str, str], ImageList]:
    """The official lists by domain and part."""
    return {
        (domain, part): read_list(place / f"{domain}_{part}_kfold.txt", domain, skip=BROKEN)
        for domain in DOMAINS
        for part in PARTS
    }


def _listed_domains(root: Path, place: Path, data: Path) -> list[Domain]:
    lists = read_lists(place)
    labels = class_labels(lists.values())
    if tuple(labels) != CLASSES:
        raise DataError(
            f"the lists in '{place}' name the classes {shortened(list(labels), 8)}",
            f"The classes of PACS are {', '.join(CLASSES)}: download the lists again.",
        )
    chosen = {place: each.of_classes(CLASSES) for place, each in lists.items()}
    check_listed(root, [path for paths, _ in chosen.values() for path in paths], "pacs", data)
    return [
        Domain(
            domain,
            file_samples(root, *chosen[domain, "train"]),
            file_samples(root, *chosen[domain, "crossval"]),
        )
        for domain in DOMAINS
    ]
