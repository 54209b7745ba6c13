"""What surrounds the icon of an infographic: charts, stubs of text, arrows, percentages.

An item draws itself into the square at `corner` with sides of `side` pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import ImageDraw

from ..parts import Colour
from .colour import mix

Pen = ImageDraw.ImageDraw


@dataclass(frozen=True)
class Theme:
    """The colours of one infographic."""

    ground: Colour
    ink: Colour
    accents: tuple[Colour, ...]

    def accent(self, rng: np.random.Generator) -> Colour:
        """One of the accents."""
        return self.accents[rng.integers(len(self.accents))]


Item = Callable[[Pen, np.ndarray, float, Theme, np.random.Generator], None]


def bars(pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator) -> None:
    """A bar chart, upright or lying."""
    x, y = corner.tolist()
    count = int(rng.integers(3, 6))
    pitch = side / count
    colour = theme.accent(rng)
    upright = rng.random() < 0.6
    for index, length in enumerate(rng.uniform(0.2, 1.0, count).tolist()):
        start = index * pitch
        if upright:
            box = (x + start, y + side * (1 - length), x + start + 0.7 * pitch, y + side)
        else:
            box = (x, y + start, x + side * length, y + start + 0.7 * pitch)
        pen.rectangle(box, fill=colour)


def pie(pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator) -> None:
    """A pie chart of two or three slices."""
    x, y = corner.tolist()
    box = (x, y, x + side, y + side)
    cuts = np.sort(rng.uniform(0, 360, 2)).tolist()
    pen.ellipse(box, fill=theme.accents[0])
    pen.pieslice(box, cuts[0], cuts[1], fill=theme.accents[1])
    if rng.random() < 0.5:
        pen.pieslice(box, cuts[1], cuts[1] + 50, fill=theme.accents[2])


def ring(pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator) -> None:
    """A percentage ring."""
    x, y = corner.tolist()
    box = (x, y, x + side, y + side)
    width = max(1, int(rng.uniform(0.1, 0.25) * side))
    pen.arc(box, 0, 360, fill=mix(theme.ground, theme.ink, 0.2), width=width)
    pen.arc(box, -90, -90 + rng.uniform(40, 330), fill=theme.accent(rng), width=width)


def text(pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator) -> None:
    """Lines of text too small to read, sometimes under a headline."""
    x, y = corner.tolist()
    lines = int(rng.integers(3, 6))
    pitch = side / lines
    colour = mix(theme.ground, theme.ink, rng.uniform(0.3, 0.8))
    for index, length in enumerate(rng.uniform(0.5, 1.0, lines).tolist()):
        top = y + index * pitch
        pen.rectangle((x, top, x + side * length, top + 0.4 * pitch), fill=colour)
    if rng.random() < 0.4:
        pen.rectangle((x, y, x + 0.7 * side, y + 0.65 * pitch), fill=theme.accent(rng))


def arrow(
    pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator
) -> None:
    """An arrow in any of the four directions."""
    half = [(-1, -0.3), (0.1, -0.3), (0.1, -0.8), (1, 0)]
    shape = np.array(half + [(x, -y) for x, y in reversed(half[:-1])])
    turn = np.array([[0, -1], [1, 0]])
    shape = shape @ np.linalg.matrix_power(turn, int(rng.integers(4)))
    points = corner + (shape + 1) * side / 2
    pen.polygon(points.ravel().tolist(), fill=theme.accent(rng))


def curve(
    pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator
) -> None:
    """A line chart on its axes."""
    x, y = corner.tolist()
    count = int(rng.integers(4, 7))
    along = np.linspace(0, 1, count)
    points = corner + np.stack([along, rng.uniform(0, 0.9, count)], axis=1) * side
    width = max(1, int(0.06 * side))
    pen.line((x, y, x, y + side, x + side, y + side), fill=theme.ink, width=max(1, width // 2))
    pen.line(points.ravel().tolist(), fill=theme.accent(rng), width=width)


def dots(pen: Pen, corner: np.ndarray, side: float, theme: Theme, rng: np.random.Generator) -> None:
    """Three out of nine: a grid of dots, some of them filled in."""
    x, y = corner.tolist()
    share, colour = rng.random(), theme.accent(rng)
    faint = mix(theme.ground, theme.ink, 0.25)
    pitch = side / 3
    for index in range(9):
        left, top = x + index % 3 * pitch, y + index // 3 * pitch
        box = (left, top, left + 0.7 * pitch, top + 0.7 * pitch)
        pen.ellipse(box, fill=colour if index / 9 < share else faint)


ITEMS: tuple[Item, ...] = (bars, pie, ring, text, text, arrow, curve, dots)
