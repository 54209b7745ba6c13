"""Patterns of stripes: a picture is a pure function of its id and of the noise asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from fsdil_bench import (
    Domain,
    Samples,
    ScenarioRequest,
    Stream,
    numpy_generator,
    option,
)

from . import DOMAINS

TRAIN, TEST = 40, 10  # pictures per class and style
SIZE = 64

#: How far a place is along a pattern; its stripes are where this, times the frequency, is even.
PATTERNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "horizontal stripes": lambda x, y: y,
    "vertical stripes": lambda x, y: x,
    "rising stripes": lambda x, y: x + y,
    "falling stripes": lambda x, y: x - y,
    "a chessboard": lambda x, y: np.floor(x) + np.floor(y),
    "waves": lambda x, y: y + np.sin(2 * x),
}
CLASSES = tuple(PATTERNS)

#: Colour of paper and of ink.
STYLES = {
    "ink": ((0.95, 0.93, 0.85), (0.10, 0.10, 0.25)),
    "chalk": ((0.15, 0.25, 0.20), (0.95, 0.95, 0.95)),
    "neon": ((0.05, 0.05, 0.10), (0.95, 0.20, 0.90)),
    "fog": ((0.65, 0.65, 0.68), (0.75, 0.75, 0.78)),
}


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    noise: float = option(0.1, "strength of the noise on every picture", minimum=0, maximum=1)


def build(request: ScenarioRequest) -> Stream:
    """Every style with all of its pictures: the harness draws the few shots."""
    noise = request.options.noise
    return Stream(
        name="stripes",
        class_names=CLASSES,
        domains=tuple(
            Domain(name, samples(name, "train", TRAIN, noise), samples(name, "test", TEST, noise))
            for name in DOMAINS
        ),
    )


def samples(style: str, split: str, per_class: int, noise: float) -> Samples:
    """The pictures of a style, drawn when they are needed."""
    pairs = [(label, i) for label in range(len(CLASSES)) for i in range(per_class)]
    ids = tuple(f"{style}/{split}/{CLASSES[label]}/{i}" for label, i in pairs)
    load, labels = partial(draw, noise=noise), np.array([label for label, _ in pairs])
    # Keys tell what a picture shows: its id does, together with the options and this code, which
    # the harness adds.
    return Samples(ids, labels, load, keys=ids)


def draw(sample_id: str, noise: float) -> np.ndarray:
    """The picture of an id `<style>/<split>/<class>/<index>`."""
    style, _, name, _ = sample_id.split("/")
    chance = numpy_generator(0, "stripes", sample_id)
    shift, frequency = chance.uniform(0, 9, 2), chance.uniform(4, 9)
    grid = np.linspace(0, 1, SIZE) * frequency
    x, y = np.meshgrid(grid + shift[0], grid + shift[1])
    striped = np.floor(PATTERNS[name](x, y)) % 2 == 0
    paper, ink = STYLES[style]
    picture = np.where(striped[:, :, None], ink, paper)
    picture = picture + chance.normal(0, noise, picture.shape)
    return (255 * picture.clip(0, 1)).astype(np.uint8)
