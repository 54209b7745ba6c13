"""The stream of the forged world: five makers, real and fake, pictures made on demand.

The training parts are as unbalanced as CDDB-Hard's, above all in the base (ten fake pictures for
one real). `@balanced` has equally many of both, and as many as before in the base, so that nothing
but the balance differs there.

`@validation` replaces the harness's own split of the base. Its base is the same maker, its later
domains are two makers that the stream does not have, and all its pictures come from a split of
their own: so a choice on it uses nothing that the stream shows, and still meets new makers.
"""

from __future__ import annotations

import numpy as np

from fsdil_bench import Domain, Samples, ScenarioRequest, Stream

from ..drawn.world import WORLD_VERSION as DRAWN_VERSION
from ..names import class_texts
from .makers import MAKERS, VALIDATION_MAKERS
from .world import CLASSES, WORLD_VERSION, draw

#: What the pictures depend on: those of the drawn world are where they begin.
VERSION = f"{WORLD_VERSION}.{DRAWN_VERSION}"

#: Real and fake training pictures: a fifth of what CDDB-Hard's five domains have.
TRAINING = {
    "weaver": (60, 600),
    "stamper": (240, 48),
    "splicer": (620, 62),
    "polisher": (24, 120),
    "sharpener": (26, 26),
}
BALANCED = 330  # training pictures of either class: half of all that the base has
TEST_IMAGES = 120  # test pictures of either class and maker: an interval of about ±6 points

#: The domains of `@validation`, their training and test pictures.
VALIDATION_TRAINING = {
    next(iter(MAKERS)): (60, 600),
    **dict.fromkeys(VALIDATION_MAKERS, (100, 100)),
}
VALIDATION_START = 1000  # training pictures of that split begin here, test pictures at 0


def build(request: ScenarioRequest) -> Stream:
    """The five makers as domains, or those of `@validation`."""
    names, synonyms = class_texts("cddb-hard", CLASSES, request.names, request.synonyms)
    return Stream(
        name="forged",
        class_names=names,
        synonyms=synonyms,
        domains=_domains(request.variant),
        keep_images=True,
        notes={"world_version": VERSION},
    )


def _domains(variant: str) -> tuple[Domain, ...]:
    if variant == "validation":
        return tuple(
            Domain(
                maker,
                _samples(maker, "validation", sizes, VALIDATION_START),
                _samples(maker, "validation", (TEST_IMAGES, TEST_IMAGES)),
            )
            for maker, sizes in VALIDATION_TRAINING.items()
        )
    balanced = variant == "balanced"
    return tuple(
        Domain(
            maker,
            _samples(maker, "train", (BALANCED, BALANCED) if balanced else sizes),
            _samples(maker, "test", (TEST_IMAGES, TEST_IMAGES)),
        )
        for maker, sizes in TRAINING.items()
    )


def _samples(maker: str, split: str, sizes: tuple[int, int], start: int = 0) -> Samples:
    pairs = [(c, start + i) for c, size in enumerate(sizes) for i in range(size)]
    ids = tuple(f"{maker}/{split}/{CLASSES[c]}/{i}" for c, i in pairs)
    keys = tuple(f"v{VERSION}/{sample_id}" for sample_id in ids)
    return Samples(ids, np.array([c for c, _ in pairs]), load, keys)


def load(sample_id: str) -> np.ndarray:
    """The picture of a sample id `<maker>/<split>/<class>/<index>`."""
    maker, split, kind, index = sample_id.split("/")
    return draw(kind, maker, int(index), split=split)
