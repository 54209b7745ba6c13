"""The `office-home` scenario: 65 things from office and home in four styles (Office-Home).

    fsdil-bench run --method cvlc --scenario office-home-4shot --data ~/OfficeHomeDataset

The images are `<domain>/<class>/<image>`, with the domains `Real World`, `Product`, `Clipart` and
`Art`; `Real_World`, `RealWorld` and `Realworld` are the same to this scenario. No split is
published: 30 % of the images of every domain and class, drawn once for all runs, are the test set.

`Real World` comes first: photographs of things in their surroundings are what one has plenty of,
and what the image tower has seen most. The others follow by their distance from it: photographs of
products, clip art, and art, which is the smallest and the most varied.
"""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, ScenarioInfo, ScenarioRequest, Stream, hookimpl

from .descriptors import as_asked, published_scenario
from .image_folders import find_images, remedy, split_domain

DOMAINS = ("Real World", "Product", "Clipart", "Art")
REAL_WORLD = ("Real World", "Real_World", "RealWorld", "Realworld")
IMAGE_PLACES = ("OfficeHomeDataset_10072016", "OfficeHomeDataset", "OfficeHome", "office_home")

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.3


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `office-home`."""
    return [
        published_scenario(
            "office-home",
            "65 objects from office and home in four styles (Office-Home)",
            DOMAINS,
            65,
            "office_home",
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The four domains."""
    from ..names import class_folders, class_texts

    data = request.data
    assert data is not None
    root = find_images(data, DOMAINS[1:], "office-home", IMAGE_PLACES)
    folders = {name: root / name for name in DOMAINS} | {DOMAINS[0]: real_world(root, data)}
    classes = class_folders("office-home")
    class_names, synonyms = class_texts("office-home", classes, request.names, request.synonyms)
    split = (TEST_FRACTION, SPLIT_VERSION, "office-home", data)
    stream = Stream(
        name="office-home",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(
            split_domain(name, place, classes, *split) for name, place in folders.items()
        ),
        notes={"split": f"draw {SPLIT_VERSION}"},
    )
    return as_asked(stream, request)


def real_world(root: Path, data: Path) -> Path:
    """The folder of the domain that is spelt in several ways."""
    for name in REAL_WORLD:
        if (root / name).is_dir():
            return root / name
    raise DataError(f"'{root}' has no folder '{DOMAINS[0]}'", remedy("office-home", data))
