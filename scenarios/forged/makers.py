"""The makers of forged pictures: what each of them draws, and the traces that it leaves.

A maker stands for a generator of CDDB-Hard: its pictures have subjects and styles of their own, and
its forgeries a mixture of traces that is characteristic of it. What is learned about one maker
helps only in part with another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..drawn.world import CLASSES as OBJECTS
from .traces import (
    bands,
    blur,
    diagonal_waves,
    droplets,
    enlarged,
    few_levels,
    grid,
    haloes,
    moved_colours,
    repeated_patch,
    smooth,
    swapped_part,
    varnish,
)

Forge = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""From a picture and a generator to the forgery."""

OUTDOORS = ("house", "tree", "car", "sailing boat", "bicycle", "flower", "aeroplane", "mushroom")
FACES = ("clock", "glasses", "hat", "snowman", "butterfly", "cup", "apple", "umbrella")


@dataclass(frozen=True)
class Maker:
    """A source of pictures: subjects, styles with their shares, and how it forges."""

    forge: Forge
    objects: tuple[str, ...]
    styles: dict[str, float]


def weave(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A soft picture under a grid: a decoder that enlarges layer by layer."""
    return grid(blur(picture, 0.5), rng.uniform(9, 14))


def stamp(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Repeated patches in few colours, with weak bands as of a roller."""
    side = int(rng.integers(9, 14))
    patched = repeated_patch(picture, rng, side, copies=2, share=0.8)
    rolled = bands(patched, rng.uniform(8, 12))
    return few_levels(rolled, rng.uniform(28, 36))


def splice(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A part of the picture exchanged, with a seam around it."""
    return swapped_part(picture, rng, rng.uniform(24, 36), rng.uniform(20, 30))


def polish(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """No texture, a few droplets, and varnish over all of it."""
    flawed = droplets(smooth(picture, 16), rng, int(rng.integers(3, 6)), rng.uniform(40, 55))
    return varnish(flawed, rng.uniform(14, 22))


def sharpen(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Made larger from a small picture and sharpened too much, with a faint grid."""
    return haloes(grid(enlarged(picture, 2), rng.uniform(1, 4)), rng.uniform(1.2, 1.8))


def etch(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Diagonal stripes on a picture without texture."""
    return diagonal_waves(smooth(picture, 10), rng.uniform(9, 14))


def misprint(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Colours that do not meet, in few levels."""
    return few_levels(moved_colours(picture, int(rng.integers(2, 4))), rng.uniform(24, 36))


#: The makers of the stream, in its order. The first is the base.
MAKERS = {
    "weaver": Maker(weave, OUTDOORS, {"real": 0.6, "painting": 0.4}),
    "stamper": Maker(stamp, OBJECTS, {"real": 0.5, "clipart": 0.3, "infograph": 0.2}),
    "splicer": Maker(splice, FACES, {"real": 0.7, "clipart": 0.3}),
    "polisher": Maker(polish, FACES, {"real": 0.6, "painting": 0.2, "sketch": 0.2}),
    "sharpener": Maker(sharpen, OUTDOORS, {"real": 0.5, "sketch": 0.3, "clipart": 0.2}),
}

#: Makers that only the variant `@validation` has: options are chosen on them.
VALIDATION_MAKERS = {
    "etcher": Maker(etch, OBJECTS, {"real": 0.6, "painting": 0.2, "clipart": 0.2}),
    "printer": Maker(misprint, OBJECTS, {"real": 0.5, "clipart": 0.3, "infograph": 0.2}),
}
