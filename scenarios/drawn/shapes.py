"""Small pure functions for drawing objects: curves as (n, 2) arrays, parts, colours, chances.

Angles are in degrees; as y points downwards, 0 is right, 90 is down, and turning is clockwise.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .parts import Colour, Drawing, Part, Role

T = TypeVar("T")
Points = np.ndarray
Tone = tuple[float, float, float, float, float, float]
"""Bounds of hue, saturation and value: low, high, low, high, low, high."""

ANY: Tone = (0.0, 1.0, 0.25, 0.95, 0.4, 0.95)
VIVID: Tone = (0.0, 1.0, 0.6, 0.95, 0.6, 0.95)
DARK: Tone = (0.0, 1.0, 0.0, 0.5, 0.08, 0.28)
LIGHT: Tone = (0.0, 1.0, 0.0, 0.18, 0.88, 1.0)
STEEL: Tone = (0.5, 0.7, 0.0, 0.15, 0.5, 0.82)
BRASS: Tone = (0.09, 0.14, 0.45, 0.75, 0.6, 0.9)
WOOD: Tone = (0.04, 0.11, 0.35, 0.75, 0.35, 0.85)
LEAF: Tone = (0.2, 0.42, 0.4, 0.9, 0.3, 0.8)
AUTUMN: Tone = (0.02, 0.14, 0.6, 0.95, 0.6, 0.95)
GLASS: Tone = (0.5, 0.6, 0.1, 0.45, 0.75, 0.98)


# Chances


def pick(rng: np.random.Generator, *options: T) -> T:
    """One of the options, each as likely as the others."""
    return options[int(rng.integers(len(options)))]


def chance(rng: np.random.Generator, probability: float = 0.5) -> bool:
    """True with the given probability."""
    return bool(rng.random() < probability)


def count(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(rng.integers(low, high + 1))


# Curves


def ellipse(cx: float, cy: float, rx: float, ry: float | None = None, n: int = 36) -> Points:
    """An ellipse, or a circle if one radius is given."""
    return arc(cx, cy, rx, rx if ry is None else ry, 0.0, 360.0 * (n - 1) / n, n)


def arc(
    cx: float, cy: float, rx: float, ry: float, start: float, stop: float, n: int = 20
) -> Points:
    """The piece of an ellipse between two angles."""
    angle = np.deg2rad(np.linspace(start, stop, n))
    return np.stack([cx + rx * np.cos(angle), cy + ry * np.sin(angle)], axis=1)


def line(*corners: tuple[float, float], step: float = 0.15) -> Points:
    """The open line through the corners, with points along its straight pieces."""
    return _dense(np.array(corners, dtype=float), step)


def polygon(*corners: tuple[float, float], radius: float = 0.0, step: float = 0.15) -> Points:
    """The closed polygon with these corners, rounded if a radius is given."""
    if radius > 0:
        return _dense(_close(_round(np.array(corners, dtype=float), radius)), step)[:-1]
    return _dense(_close(np.array(corners, dtype=float)), step)[:-1]


def rectangle(x0: float, y0: float, x1: float, y1: float, radius: float = 0.0) -> Points:
    """An upright rectangle between two opposite corners."""
    return polygon((x0, y0), (x1, y0), (x1, y1), (x0, y1), radius=radius)


def smooth(*knots: tuple[float, float], closed: bool = False, n: int = 7) -> Points:
    """A smooth (Catmull-Rom) curve through the knots, n points for each piece."""
    p = np.array(knots, dtype=float)
    if closed:
        p = np.concatenate([p[-1:], p, p[:2]])
    else:
        p = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    a, b, c, d = (p[i : len(p) - 3 + i, None] for i in range(4))
    t = (np.arange(n) / n)[None, :, None]
    curve = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    curve = curve.reshape(-1, 2)
    return curve if closed else np.concatenate([curve, p[-2:-1]])


def turned(*profile: tuple[float, float], cx: float = 0.0, straight: bool = False) -> Points:
    """What a lathe makes: (height, half width) from top to bottom, the same on either side."""
    knots = [(half, y) for y, half in profile]
    right = line(*knots) if straight else smooth(*knots)
    return np.concatenate([right, mirrored(right)[::-1]]) + np.array([cx, 0.0])


def ribbon(curve: ArrayLike, widths: ArrayLike) -> Points:
    """The outline of a band along a curve; widths are spread evenly along it."""
    p = np.asarray(curve, dtype=float)
    w = np.atleast_1d(np.asarray(widths, dtype=float))
    half = np.interp(np.linspace(0, 1, len(p)), np.linspace(0, 1, len(w)), w)[:, None] / 2
    along = np.gradient(p, axis=0)
    along /= np.maximum(np.hypot(along[:, :1], along[:, 1:]), 1e-9)
    across = along[:, ::-1] * (-1.0, 1.0)
    return np.concatenate([p + half * across, (p - half * across)[::-1]])


def leaf(x: float, y: float, angle: float, length: float, width: float) -> Points:
    """A pointed leaf growing from (x, y) in the direction of the angle."""
    t = np.linspace(0, 1, 14)
    side = np.stack([t * length, np.sin(np.pi * t**0.85) * width / 2], axis=1)
    shape = np.concatenate([side, (side * (1.0, -1.0))[-2:0:-1]])
    return transform(shape, rotate=angle, shift=(x, y))


def petal(x: float, y: float, angle: float, length: float, width: float) -> Points:
    """A round petal growing from (x, y) in the direction of the angle."""
    return transform(ellipse(length / 2, 0, length / 2, width / 2, n=24), 1.0, angle, (x, y))


def star(cx: float, cy: float, outer: float, inner: float, n: int) -> Points:
    """A star with n points, the first one upwards."""
    angle = np.pi * np.arange(2 * n) / n - np.pi / 2
    radius = np.where(np.arange(2 * n) % 2 == 0, outer, inner)
    return np.stack([cx + radius * np.cos(angle), cy + radius * np.sin(angle)], axis=1)


def cloud(cx: float, cy: float, rx: float, ry: float, bumps: int, depth: float = 0.15) -> Points:
    """An ellipse with a scalloped edge, as of a cloud or a leafy crown."""
    t = np.linspace(0, 2 * np.pi, 10 * bumps, endpoint=False)
    radius = 1 - depth + depth * np.abs(np.sin(bumps * t / 2))
    return np.stack([cx + rx * radius * np.cos(t), cy + ry * radius * np.sin(t)], axis=1)


def transform(
    points: Points,
    scale: float | tuple[float, float] = 1.0,
    rotate: float = 0.0,
    shift: tuple[float, float] = (0.0, 0.0),
) -> Points:
    """Scaled about the origin, then rotated, then shifted."""
    c, s = math.cos(math.radians(rotate)), math.sin(math.radians(rotate))
    return (points * scale) @ np.array([[c, s], [-s, c]]) + shift


def mirrored(points: Points) -> Points:
    """Left and right exchanged."""
    return points * (-1.0, 1.0)


def _close(points: Points) -> Points:
    return np.concatenate([points, points[:1]])


def _dense(points: Points, step: float) -> Points:
    """The same line with points at most `step` apart."""
    edges = points[1:] - points[:-1]
    if len(edges) == 1:
        k = max(math.ceil(math.hypot(*edges[0]) / step), 1)
        return points[:1] + np.arange(k + 1)[:, None] / k * edges
    pieces = np.maximum(np.ceil(np.hypot(edges[:, 0], edges[:, 1]) / step), 1).astype(int)
    which = np.repeat(np.arange(len(pieces)), pieces)
    past = np.arange(len(which)) - (np.cumsum(pieces) - pieces)[which]
    inside = points[which] + (past / pieces[which])[:, None] * edges[which]
    return np.concatenate([inside, points[-1:]])


def _round(corners: Points, radius: float) -> Points:
    """Each corner of a closed polygon replaced by a curve (a quadratic Bezier)."""
    before, after = np.roll(corners, 1, axis=0) - corners, np.roll(corners, -1, axis=0) - corners
    t = np.linspace(0, 1, 6)[None, :, None]

    def leg(edge: Points) -> Points:
        length = np.maximum(np.hypot(edge[:, 0], edge[:, 1]), 1e-9)[:, None]
        return (edge / length * np.minimum(radius, 0.48 * length))[:, None]

    bent = corners[:, None] + (1 - t) ** 2 * leg(before) + t**2 * leg(after)
    return bent.reshape(-1, 2)


# Parts


def area(points: Points, role: Role = "main", detail: int = 0) -> Part:
    """A filled part."""
    return Part(points, role, detail=detail)


def stroke(points: Points, role: Role = "main", width: float = 0.08, detail: int = 0) -> Part:
    """A part that is a line of some thickness."""
    return Part(points, role, closed=False, width=width, detail=detail)


def loop(points: Points, role: Role = "main", width: float = 0.08, detail: int = 0) -> Part:
    """A stroke that comes back to where it began: a ring, a frame."""
    return stroke(_close(points), role, width, detail)


def moved(
    parts: Iterable[Part],
    scale: float = 1.0,
    rotate: float = 0.0,
    shift: tuple[float, float] = (0.0, 0.0),
    flip: bool = False,
) -> list[Part]:
    """The parts mirrored left to right if asked, scaled, rotated and shifted together."""
    old = list(parts)
    points = np.concatenate([p.points for p in old])  # at once: much faster than one by one
    points = transform(mirrored(points) if flip else points, scale, rotate, shift)
    ends = accumulate(len(p.points) for p in old)
    return [
        Part(points[end - len(p.points) : end], p.role, p.closed, p.width * scale, p.detail)
        for p, end in zip(old, ends, strict=True)
    ]


def both_sides(*parts: Part) -> list[Part]:
    """The parts and their mirror images about x = 0."""
    return [*moved(parts, flip=True), *parts]


def dots(
    centres: Iterable[tuple[float, float]], radius: float, role: Role, detail: int = 2
) -> list[Part]:
    """Small discs."""
    return [area(ellipse(x, y, radius, n=14), role, detail) for x, y in centres]


def wheel(cx: float, cy: float, radius: float, hub: float) -> list[Part]:
    """A car's wheel: a tyre and a hub cap, whose size is a share of the radius."""
    return [
        area(ellipse(cx, cy, radius), "dark"),
        area(ellipse(cx, cy, radius * hub, n=24), "metal", 1),
    ]


def eye(cx: float, cy: float, radius: float) -> list[Part]:
    """A round eye: the white and the pupil."""
    return [
        area(ellipse(cx, cy, radius, n=20), "light", 1),
        area(ellipse(cx, cy, radius * 0.55, n=16), "dark"),
    ]


def panes(
    corners: Sequence[tuple[float, float]], n: int, gap: float, role: Role = "light"
) -> list[Part]:
    """A window cut into n panes; its corners are lower left, upper left, upper right, lower right.

    The gap is the share of a pane's width that the pillars between them take.
    """
    low, high, far_high, far_low = np.array(corners, dtype=float)
    return [
        area(polygon(*(a + (b - a) * t for a, b, t in sides), radius=0.04), role)
        for k in range(n)
        for s, t in [((k + gap / 2) / n, (k + 1 - gap / 2) / n)]
        for sides in [
            ((low, far_low, s), (high, far_high, s), (high, far_high, t), (low, far_low, t))
        ]
    ]


# Colours and the whole


def tone(rng: np.random.Generator, *bounds: Tone) -> Colour:
    """A colour inside one of the given bounds."""
    h0, h1, s0, s1, v0, v1 = pick(rng, *bounds)
    rgb = colorsys.hsv_to_rgb(rng.uniform(h0, h1) % 1, rng.uniform(s0, s1), rng.uniform(v0, v1))
    red, green, blue = (round(255 * c) for c in rgb)
    return red, green, blue


def palette(rng: np.random.Generator, **bounds: Tone | tuple[Tone, ...]) -> dict[Role, Colour]:
    """A colour for each role, from the bounds given (role=TONE or a tuple of them) or the usual."""
    usual: dict[Role, tuple[Tone, ...]] = {
        "main": (ANY,),
        "second": (ANY,),
        "dark": (DARK,),
        "light": (LIGHT,),
        "metal": (STEEL, STEEL, BRASS),
    }
    colours: dict[Role, Colour] = {}
    for role, tones in usual.items():
        given = bounds.get(role, tones)
        colours[role] = tone(rng, *(given if isinstance(given[0], tuple) else (given,)))
    return colours


def fitted(parts: Sequence[Part]) -> list[Part]:
    """The parts centred, and scaled to fill [-1, 1] in the longer direction, strokes included."""
    points = np.concatenate([p.points for p in parts])
    halves = [0.0 if p.closed else p.width / 2 for p in parts]
    margin = np.repeat(halves, [len(p.points) for p in parts])[:, None]
    low, high = (points - margin).min(axis=0), (points + margin).max(axis=0)
    scale = 2.0 / float((high - low).max())
    x, y = -scale * (low + high) / 2
    return moved(parts, scale, shift=(float(x), float(y)))


def compose(parts: Sequence[Part], colours: Mapping[Role, Colour]) -> Drawing:
    """The drawing made of the parts, fitted, with the colours of the roles it uses."""
    used = {p.role for p in parts}
    return Drawing(tuple(fitted(parts)), {r: c for r, c in colours.items() if r in used})
