"""Living things and one almost living: fish, butterfly, snowman."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .parts import Drawing, Part, Role
from .shapes import (
    ANY,
    DARK,
    VIVID,
    WOOD,
    Tone,
    arc,
    area,
    both_sides,
    chance,
    compose,
    count,
    dots,
    ellipse,
    eye,
    line,
    moved,
    palette,
    pick,
    polygon,
    rectangle,
    ribbon,
    smooth,
    stroke,
    transform,
    turned,
)

SNOW: Tone = (0.5, 0.65, 0.0, 0.12, 0.9, 1.0)
CARROT: Tone = (0.04, 0.09, 0.8, 0.95, 0.85, 1.0)


def fish(rng: np.random.Generator) -> Drawing:
    """A slender or round fish with a forked, fan-shaped or pointed tail."""
    u = rng.uniform
    high, hump = u(0.22, 0.8), u(-0.25, 0.2)
    tail, root = u(0.3, 0.55), high * u(0.15, 0.3)
    upper = ((1.0, 0.0), (0.75, -high * 0.6), (hump, -high), (-0.65, -root * 1.3), (-0.85, -root))
    lower = [(x, -y * u(0.85, 1.0)) for x, y in upper[:0:-1]]
    end, spread = -0.85 - tail, high * u(0.5, 0.7) + 0.2
    half_tail = ((-0.75, 0.0), (-0.9, -root), (end, -spread))
    fork = (end + pick(rng, tail * 0.5, 0.0, -tail * 0.3), 0)
    fin = smooth(*half_tail, fork, (end, spread), (-0.9, root), closed=True)
    back = ((0.35, -high * 0.75), (u(-0.1, 0.2), -high - u(0.15, 0.35)), (-0.45, -high * 0.75))
    belly = ((0.2, high * 0.7), (u(-0.2, 0.0), high + u(0.1, 0.25)), (-0.35, high * 0.7))
    parts = [
        area(fin, "second"),
        area(polygon(*back, radius=u(0.02, 0.2)), "second"),
        area(polygon(*belly, radius=u(0.02, 0.2)), "second", int(chance(rng))),
        area(smooth(*upper, *lower, closed=True)),
        *_fish_marks(rng, high),
        stroke(arc(0.3, 0, 0.13, high * 0.6, -80, 80, 12), "dark", 0.04, 1),
        *eye(0.62, -high * 0.2, u(0.07, 0.12)),
        stroke(line((0.95, high * 0.15), (0.78, high * 0.18)), "dark", 0.04, 1),
        *dots([(1.2, -0.3 - 0.25 * k) for k in range(count(rng, 0, 2))], 0.06, "light"),
    ]
    return compose(parts, palette(rng, main=(ANY, VIVID), second=(ANY, VIVID)))


def _fish_marks(rng: np.random.Generator, high: float) -> list[Part]:
    kind = pick(rng, "plain", "stripes", "scales", "band")
    role: Role = pick(rng, "second", "light", "dark")
    if kind == "stripes":
        bends = [
            smooth((x, -y), (x - 0.06, 0), (x, y))
            for x in np.linspace(0.2, -0.45, count(rng, 2, 5))
            for y in [high * 0.75 * (1 - abs(x) * 0.8)]
        ]
        return [stroke(bend, role, rng.uniform(0.05, 0.12), 2) for bend in bends]
    if kind == "scales":
        rows = [(x, y * high) for x in (0.15, -0.1, -0.35) for y in (-0.35, 0.0, 0.35)]
        return [stroke(arc(x, y, 0.09, 0.1, 90, 270, 8), role, 0.035, 2) for x, y in rows]
    if kind == "band":
        return [stroke(smooth((0.4, 0), (0, 0.04), (-0.7, 0)), "light", high * 0.25, 2)]
    return []


def butterfly(rng: np.random.Generator) -> Drawing:
    """A butterfly from above with its wings spread, or from the side with its wings up."""
    u = rng.uniform
    wings = _wings(rng)
    thick, long = u(0.06, 0.11), u(0.5, 0.7)
    trunk = turned((-0.35, 0.02), (-0.2, thick), (long * 0.3, thick), (long, 0.02))
    feeler = stroke(smooth((0.02, -0.3), (0.1, -0.6), (u(0.2, 0.35), -u(0.7, 0.9))), "dark", 0.04)
    if chance(rng, 0.25):
        insect = [area(trunk, "dark"), feeler, *moved([feeler], rotate=-25)]
        folded = moved(wings, rotate=u(45, 65), flip=True)
        parts = [*folded, *moved(insect, rotate=u(55, 75))]
    else:
        parts = [*both_sides(*wings, feeler), area(trunk, "dark")]
        parts = moved(parts, rotate=u(-50, 50) if chance(rng) else 0.0)
    return compose(parts, palette(rng, main=(ANY, VIVID), dark=(DARK, WOOD)))


def _wings(rng: np.random.Generator) -> list[Part]:
    """The two wings on the right, with their pattern."""
    u = rng.uniform
    wide, high, tip, low, drop = u(0.7, 1.0), u(0.6, 0.95), -u(0.1, 0.5), u(0.45, 0.8), u(0.5, 0.85)
    outer = ((wide * 0.45, -high * 0.85), (wide, -high), (wide * 0.98, tip), (wide * 0.5, 0.05))
    inner = ((low * 0.7, -0.05), (low, drop * 0.4), (low * 0.65, drop), (low * 0.25, drop * 0.7))
    fore = smooth((0.03, -0.15), *outer, (0.03, 0.05), closed=True)
    hind = smooth((0.03, -0.05), *inner, closed=True)
    wings = [area(hind, pick(rng, "main", "second")), area(fore)]
    middles = [(wide * 0.6, (tip - high) / 2), (low * 0.55, drop * 0.4)]
    pattern = pick(rng, "plain", "inner", "dots", "veins")
    if pattern == "inner":
        for wing, (x, y) in zip((fore, hind), middles, strict=True):
            inset = transform(wing, 0.58, 0, (x * 0.42, y * 0.42))
            wings.append(area(inset, pick(rng, "second", "light"), 1))
    elif pattern == "dots":
        wings += dots(middles, u(0.1, 0.18), "light", 1)
        wings += dots([(x * 1.25, y * 1.1) for x, y in middles], u(0.04, 0.08), "dark")
    elif pattern == "veins":
        ends = ((wide * 0.85, -high * 0.85), (wide * 0.9, tip * 1.1), (low * 0.8, drop * 0.4))
        wings += [stroke(line((0, 0), end), "dark", 0.04, 2) for end in ends]
    return wings


def snowman(rng: np.random.Generator) -> Drawing:
    """A snowman of two or three balls with some of hat, scarf, arms, buttons and broom."""
    u = rng.uniform
    radii = [u(0.32, 0.42), u(0.58, 0.75)]
    if chance(rng, 0.6):
        radii = [u(0.28, 0.36), u(0.4, 0.52), u(0.55, 0.72)]
    flat, heights = u(0.88, 1.0), [0.0]
    for above, below in pairwise(radii):
        heights.append(heights[-1] + (above + below) * flat * 0.85)
    head, chest, breadth = radii[0], heights[1], radii[1]
    parts = _stick_arms(rng, breadth * 0.7, chest - 0.1) if chance(rng, 0.75) else []
    balls = list(zip(radii, heights, strict=True))
    parts += [area(ellipse(0, y, r, r * flat), "light") for r, y in balls[::-1]]
    if chance(rng, 0.6):
        neck = (chest - breadth * flat + head * flat) / 2
        bend = smooth((-head * 0.85, neck - 0.03), (0, neck + 0.1), (head * 0.85, neck - 0.03))
        end = polygon((0.08, neck), (0.24, neck), (0.3, neck + 0.45), (0.14, neck + 0.45))
        parts += [area(end, "main", 1), area(ribbon(bend, 0.16))]
    spots = np.linspace(chest - breadth * 0.2, chest + breadth * 0.5, count(rng, 0, 4))
    parts += dots([(0, y) for y in spots], u(0.04, 0.06), "dark", 1)
    parts += [*_snow_face(rng, head), *_snow_hat(rng, head, -head * flat * 0.75)]
    if chance(rng, 0.2):
        x = breadth * 0.85 + 0.4
        twigs = polygon((x - 0.06, -0.1), (x + 0.06, -0.1), (x + 0.2, -0.5), (x - 0.2, -0.5))
        stick = stroke(line((x, -0.1), (x, heights[-1] + 0.4)), "second", 0.06, 1)
        parts += [stick, area(twigs, "second", 1)]
    return compose(parts, palette(rng, main=VIVID, second=WOOD, light=SNOW, metal=CARROT))


def _stick_arms(rng: np.random.Generator, start: float, level: float) -> list[Part]:
    parts = []
    for side in (-1, 1):
        x, y = side * (start + rng.uniform(0.45, 0.65)), level - rng.uniform(-0.1, 0.45)
        arm = line((side * start, level), (x, y))
        twig = line((x - side * 0.15, y + 0.02), (x, y - 0.16))
        parts.append(stroke(arm, "second", rng.uniform(0.05, 0.08)))
        parts.append(stroke(twig, "second", 0.05, 2))
    return parts


def _snow_face(rng: np.random.Generator, head: float) -> list[Part]:
    u = rng.uniform
    looks, gaze = u(-0.3, 0.3) * head, head * 0.35
    tip = looks + pick(rng, -1, 1) * u(0.25, 0.45)
    parts = dots([(looks - gaze, -gaze), (looks + gaze, -gaze)], u(0.035, 0.06), "dark", 0)
    parts.append(area(polygon((looks, -0.04), (tip, 0.06), (looks, 0.09)), "metal"))
    if chance(rng):
        smile = arc(looks, head * 0.1, head * 0.45, head * 0.45, 35, 145, 8)
        parts.append(stroke(smile, "dark", 0.035, 2))
    return parts


def _snow_hat(rng: np.random.Generator, head: float, top: float) -> list[Part]:
    u = rng.uniform
    kind = pick(rng, "top hat", "top hat", "bucket", "beanie", "none")
    half = head * 0.65
    if kind == "top hat":
        brim = head * u(1.0, 1.3)
        return [
            area(rectangle(-half, top - u(0.25, 0.5), half, top + 0.02), "dark"),
            stroke(line((-half, top - 0.1), (half, top - 0.1)), "main", 0.09, 2),
            area(rectangle(-brim, top - 0.03, brim, top + 0.07, 0.03), "dark"),
        ]
    if kind == "bucket":
        tall = u(0.3, 0.5)
        pail = ((-half * 0.85, top - tall), (half * 0.85, top - tall), (half * 1.2, top))
        return [area(polygon(*pail, (-half * 1.2, top)))]
    if kind == "beanie":
        dome = arc(0, top + 0.05, head * 0.85, head * 0.95, 180, 360)
        return [area(dome), *dots([(0, top - head * 0.9)], head * 0.25, "second", 0)]
    return []
