"""The `vlcs` scenario: five classes as four older data sets photographed them (VLCS).

    fsdil-bench run --method cvlc --scenario vlcs-4shot --data ~/VLCS

The images are `<domain>/<class>/<image>`, with the domains `VOC2007`, `LabelMe`, `SUN09` and
`Caltech101`. No split is published with this layout: 30 % of the images of every domain and class,
drawn once for all runs, are the test set.

`VOC2007` comes first, as the largest and the most varied. `Caltech101` comes last: its objects fill
the middle of the picture, unlike those of the scenes before. The classes are uneven: some have a
few dozen images in a domain, people several hundred.
"""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, ScenarioRequest, Stream, hookimpl

from .descriptors import as_asked, published_scenario
from .image_folders import find_images, split_domain

DOMAINS = ("VOC2007", "LabelMe", "SUN09", "Caltech101")
CLASSES = ("bird", "car", "chair", "dog", "person")
IMAGE_PLACES = ("VLCS", "vlcs")

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.3


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `vlcs`."""
    return [
        published_scenario(
            "vlcs",
            "five classes of photographs from four data sets (VLCS)",
            DOMAINS,
            len(CLASSES),
            "vlcs",
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The four domains."""
    from ..names import class_texts

    data = request.data
    assert data is not None
    root = find_images(data, DOMAINS, "vlcs", IMAGE_PLACES)
    class_names, synonyms = class_texts("vlcs", CLASSES, request.names, request.synonyms)
    split = (TEST_FRACTION, SPLIT_VERSION, "vlcs", data)
    stream = Stream(
        name="vlcs",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(split_domain(name, root / name, CLASSES, *split) for name in DOMAINS),
        notes={"split": f"draw {SPLIT_VERSION}"},
    )
    return as_asked(stream, request)
