"""The stream of the drawn world: six styles, 24 classes, pictures made on demand.

The pictures are fixed: a run's seed decides which of them a few-shot domain shows, never what they
look like. Training, test, validation and pre-training pictures come from separate splits.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fsdil_bench import Domain, Samples, ScenarioRequest, Stream

from .world import CLASSES, DOMAINS, WORLD_VERSION, draw

TRAIN_IMAGES = 100  # training pictures per class and style: all of the base, or to draw shots from
TEST_IMAGES = 20  # test pictures per class and style


def build(request: ScenarioRequest) -> Stream:
    """All six styles, equally many pictures in each, so that any of them may be the base."""
    del request
    synonyms = json.loads((Path(__file__).parent / "classes.json").read_text(encoding="utf-8"))
    return Stream(
        name="drawn",
        class_names=CLASSES,
        synonyms=tuple(tuple(synonyms[name]) for name in CLASSES),
        domains=tuple(
            Domain(
                style,
                _samples(style, "train", TRAIN_IMAGES),
                _samples(style, "test", TEST_IMAGES),
            )
            for style in DOMAINS
        ),
        keep_images=True,
        notes={"world_version": WORLD_VERSION},
    )


def _samples(style: str, split: str, per_class: int) -> Samples:
    pairs = [(c, i) for c in range(len(CLASSES)) for i in range(per_class)]
    ids = tuple(f"{style}/{split}/{CLASSES[c]}/{i}" for c, i in pairs)
    keys = tuple(f"v{WORLD_VERSION}/{sample_id}" for sample_id in ids)
    return Samples(ids, np.array([c for c, _ in pairs]), load, keys)


def load(sample_id: str) -> np.ndarray:
    """The picture of a sample id `<style>/<split>/<class>/<index>`."""
    style, split, name, index = sample_id.split("/")
    return draw(name, style, int(index), split=split)
