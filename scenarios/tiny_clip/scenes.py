"""Made-up places and sessions for pre-training: none of them is one of the shelf's.

A place is a wall and a ground, each in one colour with some bumps, and a few things out of focus.
A session has light, camera and distance of its own for every picture.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..drawn.styles.colour import random_colour
from ..shelf.places import GROUND, HIGH, WIDE, Canvas
from ..shelf.seeds import generator
from ..shelf.sessions import Session

PLACES = 80


@lru_cache(maxsize=PLACES)
def made_up_place(number: int, size: int) -> np.ndarray:
    """The whole place of that number, as floats in [0, 255]."""
    rng = generator("pre-training", "place", number)
    wall, ground = (random_colour(rng, (0.05, 0.6), (0.25, 0.95)) for _ in range(2))
    canvas = Canvas(size, rng, wall)
    for _ in range(int(rng.integers(0, 40))):
        x, y = rng.uniform(0, WIDE), rng.uniform(0, GROUND)
        dx, dy = rng.uniform(0.03, 0.3, 2)
        is_disc = rng.random() < 0.4
        colour = random_colour(rng, (0.1, 0.7), (0.2, 0.95))
        if is_disc:
            canvas.disc(x, y, dx, dy, colour)
        else:
            canvas.box(x, y, x + dx, y + dy, colour)
    canvas.blur(rng.uniform(0.003, 0.03))
    if rng.random() < 0.8:
        canvas.box(0, GROUND - rng.uniform(0.05, 0.3), WIDE, HIGH, ground)
    rows = int(rng.integers(8, 80))
    canvas.grain(0, HIGH, rows, 3 * rows, rng.uniform(0.1, 0.5))
    pixels = np.asarray(canvas.image.reduce(2), dtype=np.float32)
    pixels.setflags(write=False)
    return pixels


def random_session(rng: np.random.Generator) -> Session:
    """Light, camera and distance at random; mostly not far from daylight."""
    warm, green = rng.normal(0, 0.1), rng.normal(0, 0.04)
    strength = rng.uniform(0.65, 1.15)
    shadow = (rng.uniform(-0.09, 0.09), rng.uniform(0.0, 0.06), rng.uniform(0.0, 0.6))
    return Session(
        tint=(strength * (1 + warm), strength * (1 + green), strength * (1 - warm)),
        on_thing=rng.uniform(0.7, 1.0),
        from_left=rng.uniform(-1, 1),
        depth=rng.uniform(0.1, 0.5),
        gloss=rng.uniform(0.0, 0.7),
        shadow=shadow,
        spot=max(0.0, rng.uniform(-0.4, 0.5)),
        haze=max(0.0, rng.uniform(-0.2, 0.2)),
        blur=max(0.0, rng.uniform(-0.015, 0.012)),
        noise=rng.uniform(1, 5),
        size=(rng.uniform(0.4, 0.6), rng.uniform(0.6, 0.85)),
        roll=rng.uniform(3, 28),
        drift=rng.uniform(0.03, 0.09),
        hand=bool(rng.random() < 0.3),
    )
