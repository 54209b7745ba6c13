"""my-scenario: say here what it shows.

    fsdil-bench run --method ncm --scenario my-scenario-1shot
    fsdil-bench list scenarios my-scenario

As it stands: four shapes in three kinds of light, drawn by code. A picture is a pure function of
its id, so that every run and every method sees the same ones.
"""

from __future__ import annotations

import numpy as np
from fsdil_bench import Domain, Samples, ScenarioRequest, Stream, numpy_generator

from . import CLASSES, DOMAINS

TRAIN, TEST = 30, 10  # pictures per class and domain
SIZE = 64


def build(request: ScenarioRequest) -> Stream:
    """All domains with all their pictures: the harness draws the few shots.

    `request` holds what the user asked for: a variant, the folder of --data, options.
    """
    del request
    return Stream(
        name="my-scenario",
        class_names=CLASSES,
        domains=tuple(
            Domain(name, samples(name, "train", TRAIN), samples(name, "test", TEST))
            for name in DOMAINS
        ),
    )


def samples(domain: str, split: str, per_class: int) -> Samples:
    """The labelled pictures of a domain, which are made when they are needed."""
    pairs = [(label, i) for label in range(len(CLASSES)) for i in range(per_class)]
    ids = tuple(f"{domain}/{split}/{CLASSES[label]}/{i}" for label, i in pairs)
    # Keys tell what a picture shows: here its id does, together with this code, which counts too.
    return Samples(ids, np.array([label for label, _ in pairs]), load, keys=ids)


def load(sample_id: str) -> np.ndarray:
    """The picture of an id: RGB, uint8, (height, width, 3)."""
    domain, _, name, _ = sample_id.split("/")
    draw = numpy_generator(0, "my-scenario", sample_id)
    x, y = np.meshgrid(np.linspace(-1, 1, SIZE), np.linspace(-1, 1, SIZE))
    x, y = x - draw.uniform(-0.3, 0.3), y - draw.uniform(-0.3, 0.3)
    radius, size = np.hypot(x, y), draw.uniform(0.4, 0.7)
    shape = {
        "disc": radius < size,
        "square": np.maximum(abs(x), abs(y)) < size,
        "cross": (np.minimum(abs(x), abs(y)) < size / 4) & (np.maximum(abs(x), abs(y)) < size),
        "ring": abs(radius - size) < size / 4,
    }[name]
    paper, ink = draw.uniform(0.6, 1, 3), draw.uniform(0, 0.4, 3)
    picture = np.where(shape[:, :, None], ink, paper)
    light, noise = {"day": (1.0, 0.02), "dusk": (0.6, 0.05), "night": (0.25, 0.08)}[domain]
    picture = light * picture + draw.normal(0, noise, picture.shape)
    return (255 * picture.clip(0, 1)).astype(np.uint8)
