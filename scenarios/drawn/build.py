"""The stream of the drawn world: six styles, 24 classes, pictures made on demand.

The pictures are fixed: a run's seed decides which of them a few-shot domain shows, never what they
look like. Training, test, validation and pre-training pictures come from separate splits.

`@validation` replaces the harness's own split of the base. It has new pictures of the base, and
then two styles that the stream does not have: so a choice on it uses nothing that the stream shows,
and still meets a change of domain.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fsdil_bench import Domain, Samples, ScenarioRequest, Stream

from .world import CLASSES, DOMAINS, VALIDATION_DOMAINS, WORLD_VERSION, draw

TRAIN_IMAGES = 100  # training pictures per class and style: all of the base, or to draw shots from
TEST_IMAGES = 20  # test pictures per class and style

#: Training pictures per class of the styles that only `@validation` has: to draw shots from.
VALIDATION_SHOTS = 40
# The embedded model was chosen on pictures of the same split with lower numbers
# (tiny_clip/pretrain.py and tiny_clip/profile.py: 0 to 39 and 1000 to 1007).
VALIDATION_TRAIN_START = 2000
VALIDATION_TEST_START = 3000


def build(request: ScenarioRequest) -> Stream:
    """All six styles, or those of `@validation`."""
    synonyms = json.loads((Path(__file__).parent / "classes.json").read_text(encoding="utf-8"))
    return Stream(
        name="drawn",
        class_names=CLASSES,
        synonyms=tuple(tuple(synonyms[name]) for name in CLASSES),
        domains=_validation() if request.variant == "validation" else _stream(),
        keep_images=True,
        notes={"world_version": WORLD_VERSION},
    )


def _stream() -> tuple[Domain, ...]:
    """Equally many pictures of every style, so that any of them may be the base."""
    return tuple(
        Domain(
            style,
            _samples(style, "train", range(TRAIN_IMAGES)),
            _samples(style, "test", range(TEST_IMAGES)),
        )
        for style in DOMAINS
    )


def _validation() -> tuple[Domain, ...]:
    """The base with as many pictures as in the stream, and the styles of this variant alone."""
    sizes = {DOMAINS[0]: TRAIN_IMAGES, **dict.fromkeys(VALIDATION_DOMAINS, VALIDATION_SHOTS)}
    train, test = VALIDATION_TRAIN_START, VALIDATION_TEST_START
    return tuple(
        Domain(
            style,
            _samples(style, "validation", range(train, train + size)),
            _samples(style, "validation", range(test, test + TEST_IMAGES)),
        )
        for style, size in sizes.items()
    )


def _samples(style: str, split: str, indices: range) -> Samples:
    """The pictures of those numbers of every class."""
    pairs = [(c, i) for c in range(len(CLASSES)) for i in indices]
    ids = tuple(f"{style}/{split}/{CLASSES[c]}/{i}" for c, i in pairs)
    keys = tuple(f"v{WORLD_VERSION}/{sample_id}" for sample_id in ids)
    return Samples(ids, np.array([c for c, _ in pairs]), load, keys)


def load(sample_id: str) -> np.ndarray:
    """The picture of a sample id `<style>/<split>/<class>/<index>`."""
    style, split, name, index = sample_id.split("/")
    return draw(name, style, int(index), split=split)
