"""Photographs of marked things for pre-training, such as "a green cup with white dots".

They are of the ten kinds on the shelf, with the same colours and marks. But none is one of the
fifty individuals of `shelf`, and none is at one of its places: so the model knows what the words
mean, as CLIP does, and has met nobody of those whom it will be asked about.
"""

from __future__ import annotations

import numpy as np

from ..shelf.film import video
from ..shelf.individuals import COLOURS, INDIVIDUALS, Individual
from ..shelf.marks import PATTERNS
from ..shelf.photo import photo
from ..shelf.seeds import generator
from .scenes import PLACES, made_up_place, random_session

KINDS = list(dict.fromkeys(who.kind for who in INDIVIDUALS))
_STRETCH = 0.12  # how far a shape goes beyond those of the individuals of its kind


def random_thing(split: str, index: int) -> Individual:
    """Who is on the picture of that number: nobody of the fifty."""
    rng = generator("pre-training", split, index, "who")
    while True:
        kind = KINDS[rng.integers(len(KINDS))]
        colour, mark_colour = (str(c) for c in rng.choice(list(COLOURS), 2, replace=False))
        mark = str(rng.choice(list(PATTERNS)))
        if _looks(kind, colour, mark, mark_colour) not in _TAKEN:
            return Individual(kind, _shape(kind, rng), colour, mark, mark_colour)


def _looks(kind: str, colour: str, mark: str, mark_colour: str) -> tuple[str, ...]:
    """What tells two of a kind apart: a plain thing does not show the colour of its marks."""
    return (kind, colour, mark) if mark == "plain" else (kind, colour, mark, mark_colour)


def _shape(kind: str, rng: np.random.Generator) -> tuple[float, ...]:
    """Every number between the least and the largest of the kind, or a little beyond."""
    known = np.array([who.shape for who in INDIVIDUALS if who.kind == kind])
    low, high = known.min(0), known.max(0)
    room = _STRETCH * (high - low)
    return tuple(rng.uniform(low - room, high + room).tolist())


def draw_thing(who: Individual, split: str, index: int, size: int) -> np.ndarray:
    """The photograph of that number: (size, size, 3) bytes."""
    rng = generator("pre-training", split, index, "scene")
    session = random_session(rng)
    shot = video(session, rng).shot(int(rng.integers(50)))
    place = made_up_place(int(rng.integers(PLACES)), size)
    return photo(who, place, session, shot, rng, size)


#: What nobody may look like.
_TAKEN = {_looks(who.kind, who.colour, who.mark, who.mark_colour) for who in INDIVIDUALS}
