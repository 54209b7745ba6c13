"""What a drawn object is made of: parts in object coordinates, free of any style.

An *object* is a function of a random generator that returns a `Drawing`; a *style* is a
function that renders a `Drawing` as a picture. The two meet only here, so that every object can
be drawn in every style.

Object coordinates: x to the right, y downwards, the object centred on (0, 0) and filling
about [-1, 1] in its longer direction. Parts are listed back to front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

Role = Literal["main", "second", "dark", "light", "metal"]
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Part:
    """An area (`closed`) or a stroke along `points`, an (n, 2) array.

    `role` names the colour, `width` is a stroke's thickness in object units, `detail` says how
    soon a hasty hand leaves the part out: 0 never, 1 sometimes, 2 first.
    """

    points: np.ndarray
    role: Role = "main"
    closed: bool = True
    width: float = 0.08
    detail: int = 0


@dataclass(frozen=True)
class Drawing:
    """An object: its parts, back to front, and the colour of every role they use."""

    parts: tuple[Part, ...]
    colours: Mapping[Role, Colour]
