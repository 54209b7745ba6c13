"""The `domainnet` and `dn4il` scenarios: everyday objects in six styles (DomainNet, cleaned).

    fsdil-bench run --method cvlc --scenario domainnet-1shot --data ~/domainnet

The images are `<domain>/<class>/<image>.jpg` (`.png` in quickdraw); the published lists
`<domain>_train.txt` and `<domain>_test.txt` beside the domains (or in a folder `txt`) say which are
for training and which for testing.

`domainnet` drops the classes that have fewer than 8 training images or no test image in some
domain, from all domains and for every number of shots: 306 of the 345 classes stay. Which go is
computed from the lists and must be what the paper found; if the lists name all 345 classes and it
is not, they are damaged or of another version, and the run is refused (`--scenario-set
strict=false` continues with the computed classes). Lists with fewer classes are a part of the data
set chosen by the user: the rule is applied to them, and the record says so.

`dn4il` (Gowda et al., 2023) is 100 of the classes with fewer images each, for which lists are
published; they are taken from a folder `dn4il` in the data set's folder. Where there are none, all
images of these classes in DomainNet's own lists are used. The record says which. No class is
dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsdil_bench import (
    DataError,
    Domain,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    file_samples,
    hookimpl,
    option,
)

from . import descriptors as published
from .descriptors import as_asked, published_scenario
from .image_folders import find_images, remedy, shortened
from .image_lists import ImageList, check_listed, class_labels, find_lists, read_list

DOMAINS = ("real", "painting", "clipart", "sketch", "quickdraw", "infograph")
CLASSES = 345
LEAST_TRAINING = 8

#: The folders of the classes that the paper drops.
DROPPED = (
    "angel", "belt", "blackberry", "bush", "calculator", "cannon", "compass", "computer", "cooler",
    "cow", "crown", "diamond", "diving_board", "dresser", "eraser", "fan", "fireplace",
    "floor_lamp", "leaf", "light_bulb", "line", "microwave", "oven", "pants", "shovel",
    "sleeping_bag", "snail", "stereo", "stitches", "stove", "syringe", "t-shirt", "toe",
    "toothbrush", "underwear", "van", "washing_machine", "waterslide", "wristwatch",
)  # fmt: skip

IMAGE_PLACES = ("images", "DomainNet", "domainnet")  # where the domains may lie, below --data
LIST_PLACES = ("txt", "splits")  # where the lists may lie, below the domains
DN4IL_PLACES = ("dn4il", "DN4IL", "DN4IL-dataset")


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `domainnet` and `dn4il`."""
    return [
        published_scenario(
            "domainnet",
            "306 everyday objects in six styles (DomainNet, cleaned)",
            DOMAINS,
            CLASSES - len(DROPPED),
            "domainnet",
            options="fsdil_scenarios.published.domainnet:Options",
        ),
        published_scenario(
            "dn4il",
            "100 classes of DomainNet in six styles (DN4IL)",
            DOMAINS,
            100,
            "domainnet",
            factory="fsdil_scenarios.published.domainnet:build_dn4il",
            source="fsdil_scenarios.published.domainnet_source:DN4IL_SOURCE",
        ),
    ]


@dataclass(frozen=True)
class Options(published.Options):
    """What can be set with `--scenario-set`."""

    strict: bool = option(
        True, "refuse lists of all 345 classes that drop different ones than the paper"
    )


def build(request: ScenarioRequest) -> Stream:
    """DomainNet without the classes that have too few images in some domain."""
    data = request.data
    assert data is not None
    root = find_images(data, DOMAINS, "domainnet", IMAGE_PLACES)
    lists = read_lists(list_place(data, root, "domainnet"))
    labels = class_labels(lists.values())
    dropped = too_few(lists, labels)
    if len(labels) == CLASSES and request.options.strict:
        _check_dropped(dropped, data)
    kept = [name for name in labels if name not in dropped]
    if not kept:
        raise DataError(
            f"none of the {len(labels)} classes in the lists below '{data}' has {LEAST_TRAINING} "
            "training images and a test image in every domain",
            remedy("domainnet", data),
        )
    notes = {"dropped": sorted(dropped), "lists_name": f"{len(labels)} of {CLASSES} classes"}
    return _stream("domainnet", request, root, lists, kept, notes)


def build_dn4il(request: ScenarioRequest) -> Stream:
    """The 100 classes of DN4IL."""
    from ..names import dn4il_folders

    data = request.data
    assert data is not None
    root = find_images(data, DOMAINS, "dn4il", IMAGE_PLACES)
    place = list_place(data, root, "dn4il")
    lists = read_lists(place)
    labels = class_labels(lists.values())
    wanted = set(dn4il_folders())
    absent = sorted(wanted - set(labels))
    if absent:
        raise DataError(
            f"the lists in '{place}' lack {len(absent)} of the {len(wanted)} classes of "
            f"DN4IL: {shortened(absent)}",
            remedy("dn4il", data),
        )
    which = "DN4IL's own" if len(labels) == len(wanted) else "DomainNet's, all images"
    kept = [name for name in labels if name in wanted]
    return _stream("dn4il", request, root, lists, kept, {"lists": which})


def list_place(data: Path, root: Path, data_set: str) -> Path:
    """The folder with the twelve lists; DN4IL's own take precedence over DomainNet's."""
    own = [start / name for start in (data, root) for name in DN4IL_PLACES]
    starts = [*(own if data_set == "dn4il" else []), root, data]
    names = [f"{domain}_{part}.txt" for domain in DOMAINS for part in ("train", "test")]
    places = [start / inner for start in starts for inner in ("", *LIST_PLACES)]
    found = find_lists(places, names, data_set, data)
    if found is None:
        raise DataError(
            f"'{root}' has none of the {len(names)} lists of {data_set}: {shortened(names)}",
            remedy(data_set, data),
        )
    return found


def read_lists(place: Path) -> dict[tuple[str, str], ImageList]:
    """The lists by domain and part."""
    return {
        (domain, part): read_list(place / f"{domain}_{part}.txt", domain)
        for domain in DOMAINS
        for part in ("train", "test")
    }


def too_few(lists: Mapping[tuple[str, str], ImageList], labels: Mapping[str, int]) -> set[str]:
    """The classes with fewer than 8 training images or no test image in some domain."""
    found: set[str] = set()
    for (_, part), each in lists.items():
        least = LEAST_TRAINING if part == "train" else 1
        counts = np.bincount(each.labels, minlength=max(labels.values(), default=0) + 1)
        found |= {name for name, label in labels.items() if counts[label] < least}
    return found


def _check_dropped(dropped: set[str], data: Path) -> None:
    more, fewer = sorted(dropped - set(DROPPED)), sorted(set(DROPPED) - dropped)
    if more or fewer:
        raise DataError(
            f"the lists of all {CLASSES} classes drop {len(dropped)} classes, the paper "
            f"{len(DROPPED)}; only the lists drop: {shortened(more) or 'none'}; "
            f"only the paper drops: {shortened(fewer) or 'none'}",
            f"{remedy('domainnet', data)} --scenario-set strict=false continues anyway.",
        )


def _stream(
    name: str,
    request: ScenarioRequest,
    root: Path,
    lists: Mapping[tuple[str, str], ImageList],
    kept: Sequence[str],
    notes: Mapping[str, object],
) -> Stream:
    from ..names import class_texts

    assert request.data is not None
    class_names, synonyms = class_texts("domainnet", kept, request.names, request.synonyms)
    chosen = {place: each.of_classes(kept) for place, each in lists.items()}
    check_listed(root, [path for paths, _ in chosen.values() for path in paths], name, request.data)
    stream = Stream(
        name=name,
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(
            Domain(
                domain,
                file_samples(root, *chosen[domain, "train"]),
                file_samples(root, *chosen[domain, "test"]),
            )
            for domain in DOMAINS
        ),
        transform="domainnet",
        notes=notes,
    )
    return as_asked(stream, request)
