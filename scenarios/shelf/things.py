"""The ten kinds of things on the shelf: each a function of its shape and of how far it is turned.

A shape is a few fixed numbers, so an individual has the same outline in every picture. Turning is
about the upright axis: what sticks out to the side (a handle, a spout) draws in, and the marks
wander over the body. Coordinates are those of `drawn`: y downwards, about [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import cos

import numpy as np

from ..drawn.parts import Part
from ..drawn.shapes import (
    Points,
    arc,
    area,
    dots,
    ellipse,
    line,
    mirrored,
    polygon,
    rectangle,
    smooth,
    stroke,
    turned,
    wheel,
)

Shape = tuple[float, ...]


@dataclass(frozen=True)
class Thing:
    """Parts, back to front; the part number `body` carries the marks.

    A `round` body is one turned on a lathe: `halves` are half its widths at `heights`. On a flat
    one marks lie as on paper. `width` is half its width seen from the front, where it is widest;
    `top` and `bottom` bound the marks.
    """

    parts: tuple[Part, ...]
    body: int
    heights: np.ndarray
    halves: np.ndarray
    round: bool
    width: float
    top: float
    bottom: float


def _thing(
    behind: list[Part],
    body: Points,
    front: list[Part],
    *,
    flat: float | None = None,
    marks: tuple[float, float] | None = None,
) -> Thing:
    """`flat` is half the width of a flat body seen from the front; without it the body is round."""
    right = body[body[:, 0] >= 0]
    right = right[np.argsort(right[:, 1], kind="stable")]
    top, bottom = marks or (float(body[:, 1].min()), float(body[:, 1].max()))
    parts = (*behind, area(body), *front)
    width = float(right[:, 0].max()) if flat is None else flat
    return Thing(parts, len(behind), right[:, 1], right[:, 0], flat is None, width, top, bottom)


def _rounded(side: Points, flat: float) -> Points:
    """A lathe's work seen a little from above: its right side, and a bulging foot."""
    half, low = side[-1]
    foot = arc(0, low, half, half * flat, 0, 180)
    return np.concatenate([side, foot[1:-1], mirrored(side)[::-1]])


def cup(shape: Shape, turn: float) -> Thing:
    """Height, half widths of rim, middle and foot, and reach of the handle."""
    height, rim, middle, foot, reach = shape
    top, low = -height, height * 0.85
    side = smooth((rim, top), (middle, 0.1), (foot, low))
    out = reach * cos(turn)
    x = rim * 0.92
    ear = smooth(
        (x, top * 0.6),
        (x + out, top * 0.55),
        (x + out * 0.9, low * 0.45),
        (middle * 0.9, low * 0.5),
    )
    inside = [area(ellipse(0, top, rim, rim * 0.22), "light")]
    inside.append(area(ellipse(0, top + 0.03, rim * 0.86, rim * 0.16), "dark"))
    handle = [stroke(ear, "main", 0.17)]
    return _thing(handle, _rounded(side, 0.2), inside, marks=(top + rim * 0.2, low))


def bottle(shape: Shape, turn: float) -> Thing:
    """Half widths of neck, shoulder and foot, and where neck and shoulder end."""
    neck, shoulder, foot, neck_end, shoulder_end = shape
    side = smooth(
        (neck, -0.86), (neck, neck_end), (shoulder, shoulder_end), (shoulder, 0.5), (foot, 0.92)
    )
    lid = [area(rectangle(-neck * 1.25, -1.0, neck * 1.25, -0.8, 0.05), "second")]
    return _thing([], _rounded(side, 0.15), lid, marks=(shoulder_end - 0.08, 0.95))


def can(shape: Shape, turn: float) -> Thing:
    """Half its width and half its height."""
    half, high = shape
    side = smooth(
        (half * 0.86, -high), (half, -high + 0.12), (half, high - 0.1), (half * 0.9, high)
    )
    lid = [
        area(ellipse(0, -high, half * 0.88, half * 0.2), "metal"),
        area(ellipse(0, -high + 0.01, half * 0.72, half * 0.14), "light"),
        area(ellipse(half * 0.2 * cos(turn), -high + 0.02, half * 0.22, half * 0.06, n=16), "dark"),
    ]
    return _thing([], _rounded(side, 0.18), lid, marks=(-high + 0.14, high + 0.02))


def ball(shape: Shape, turn: float) -> Thing:
    """Half its width and half its height."""
    half, high = shape
    return _thing([], ellipse(0, 0, half, high, n=48), [])


def teapot(shape: Shape, turn: float) -> Thing:
    """Half the width and half the height of the belly, and the height of the lid."""
    half, high, lid = shape
    belly = turned(
        (-high, half * 0.45), (-high * 0.4, half * 0.95), (high * 0.3, half), (high, half * 0.6)
    )
    c = 0.35 + 0.65 * cos(turn)
    spout = smooth(
        (-half * 0.7, high * 0.4), (-half - 0.22 * c, 0.05), (-half - 0.42 * c, -high * 0.75)
    )
    ear = smooth(
        (half * 0.75, -high * 0.55),
        (half + 0.36 * c, -high * 0.5),
        (half + 0.36 * c, high * 0.4),
        (half * 0.8, high * 0.55),
    )
    behind = [stroke(spout, "main", 0.2), stroke(ear, "main", 0.13)]
    top = [
        area(
            turned(
                (-high - lid, 0.08), (-high - lid * 0.4, half * 0.38), (-high + 0.05, half * 0.5)
            )
        ),
        *dots([(0.0, -high - lid - 0.06)], 0.11, "second"),
    ]
    return _thing(behind, belly, top, marks=(-high * 0.8, high))


def lamp(shape: Shape, turn: float) -> Thing:
    """Half widths of the shade above and below, its height, and half widths of stem and foot."""
    upper, lower, tall, stem, foot = shape
    low = -1 + tall
    side = line((upper, -1.0), (lower, low))
    base = turned((low - 0.05, 0.07), (0.45, stem), (0.8, stem * 0.8), (0.96, foot))
    return _thing(
        [area(base, "metal"), area(ellipse(0, low, lower * 0.98, 0.12), "light")],
        np.concatenate([side, arc(0, low, lower, 0.1, 0, 180)[1:-1], mirrored(side)[::-1]]),
        [],
        marks=(-1.0, low + 0.06),
    )


def hat(shape: Shape, turn: float) -> Thing:
    """Height of the crown, its half widths above and below, and reach and flatness of the brim."""
    high, upper, lower, brim, flat = shape
    side = smooth((0.12, -high), (upper, -high * 0.82), (lower, 0.42))
    crown = np.concatenate(
        [side, arc(0, 0.42, lower, flat * 0.5, 0, 180)[1:-1], mirrored(side)[::-1]]
    )
    rim = [area(ellipse(0, 0.45, brim, flat, n=40), "main")]
    return _thing(rim, crown, [], marks=(-high, 0.5))


def car(shape: Shape, turn: float) -> Thing:
    """Length and height of the cabin, its place, radius of the wheels, height of the body."""
    cabin, tall, place, radius, deep = shape
    c = 0.7 + 0.3 * cos(turn)
    left, right = place - cabin, place + cabin
    roof = polygon(
        (left * c, -0.22),
        ((left + 0.2) * c, -tall),
        ((right - 0.25) * c, -tall),
        ((right + 0.05) * c, -0.22),
        radius=0.1,
    )
    pane = polygon(
        ((left + 0.14) * c, -0.25),
        ((left + 0.27) * c, -tall + 0.1),
        ((right - 0.32) * c, -tall + 0.1),
        ((right - 0.12) * c, -0.25),
        radius=0.06,
    )
    body = rectangle(-c, -0.25, c, deep, 0.16)
    front = [
        *(part for x in (-0.56, 0.56) for part in wheel(x * c, deep, radius, 0.5)),
        area(ellipse(0.93 * c, 0.0, 0.07, 0.1, n=14), "light"),
    ]
    post = stroke(line((place * c, -tall), (place * c, -0.22)), "main", 0.08)
    behind = [area(roof), area(pane, "light"), post]
    return _thing(behind, body, front, flat=1.0)


def book(shape: Shape, turn: float) -> Thing:
    """Half its width, half its height and its thickness."""
    half, high, thick = shape
    w = half * cos(turn)
    slant = 0.12 * np.sin(turn)
    cover = polygon(
        (-w, -high - slant), (w, -high + slant), (w, high - slant), (-w, high + slant), radius=0.03
    )
    spine = polygon(
        (-w - thick, -high + 0.02),
        (-w, -high - slant),
        (-w, high + slant),
        (-w - thick, high - 0.02),
    )
    pages = polygon(
        (-w - thick, -high + 0.02),
        (-w, -high - slant),
        (w, -high + slant),
        (w - thick, -high - 0.09),
    )
    return _thing([area(pages, "light"), area(spine, "dark")], cover, [], flat=half)


def umbrella(shape: Shape, turn: float) -> Thing:
    """Height of the canopy, number of its panels, length of the stick and width of its crook."""
    high, panels, long, hook = shape
    feet = np.linspace(-1, 1, int(panels) + 1)
    hem = [arc((a + b) / 2, 0, (b - a) / 2, 0.1, 0, -180, 8) for a, b in pairwise(feet.tolist())]
    canopy = np.concatenate([arc(0, 0, 1, high, 180, 360, 32), *hem[::-1]]) - (0, 0.1)
    straight = line((0, -high - 0.24), (0, long))
    crook = np.concatenate([straight, arc(hook, long, hook, hook, 180, 0)[1:]])
    return _thing([stroke(crook, "dark", 0.09)], canopy, [], marks=(-high - 0.1, -0.1))


Maker = Callable[[Shape, float], Thing]

THINGS: dict[str, Maker] = {
    "cup": cup,
    "bottle": bottle,
    "can": can,
    "ball": ball,
    "teapot": teapot,
    "lamp": lamp,
    "hat": hat,
    "car": car,
    "book": book,
    "umbrella": umbrella,
}
