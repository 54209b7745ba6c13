"""Tools: key, scissors, hammer, ladder."""

from __future__ import annotations

import numpy as np

from .parts import Drawing, Part
from .shapes import (
    ANY,
    BRASS,
    STEEL,
    VIVID,
    WOOD,
    arc,
    area,
    both_sides,
    chance,
    compose,
    count,
    dots,
    ellipse,
    line,
    loop,
    moved,
    palette,
    pick,
    polygon,
    rectangle,
    ribbon,
    smooth,
    stroke,
    transform,
)


def key(rng: np.random.Generator) -> Drawing:
    """A modern key with a toothed edge, or an antique one with a ring and a bit."""
    parts = _antique_key(rng) if chance(rng) else _modern_key(rng)
    tilt = pick(rng, 0, 0, -45, 45, 90, -90) + rng.uniform(-15, 15)
    return compose(moved(parts, rotate=tilt), palette(rng, metal=(STEEL, BRASS, WOOD)))


def _antique_key(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    length, thick, ring = u(1.1, 1.5), u(0.09, 0.15), u(0.26, 0.38)
    tip, bit, drop = length, u(0.25, 0.4), u(0.28, 0.45)
    notch, n = drop * u(0.3, 0.45), count(rng, 2, 3)
    parts = [area(rectangle(0, -thick / 2, length, thick / 2, 0.04), "metal")]
    comb = [(tip - 0.05 - bit, 0.0), (tip - 0.05, 0.0)]
    for k in range(n):
        right, left = (tip - 0.05 - bit * (2 * k + j) / (2 * n - 1) for j in (0, 1))
        comb += [(right, drop), (left, drop)]
        if k < n - 1:
            next_right = tip - 0.05 - bit * (2 * k + 2) / (2 * n - 1)
            comb += [(left, drop - notch), (next_right, drop - notch)]
    parts.append(area(polygon(*comb), "metal"))
    for x in (0.06, u(0.15, 0.4))[: count(rng, 0, 2)]:
        parts.append(area(rectangle(x, -thick, x + 0.08, thick, 0.03), "metal", 1))
    shape = pick(rng, "ring", "oval", "trefoil", "heart")
    if shape == "trefoil":
        lobes = ((-0.7, -0.62), (-0.7, 0.62), (-1.6, 0))
        rings = [ellipse(ring * x, ring * y, ring * 0.62) for x, y in lobes]
    elif shape == "heart":
        heart = ((0, 0), (-0.7, 0.8), (-1.6, 0.75), (-1.3, 0), (-1.6, -0.75), (-0.7, -0.8))
        rings = [transform(smooth(*heart, closed=True), ring)]
    else:
        rings = [ellipse(-ring, 0, ring, ring * (1.0 if shape == "ring" else u(1.2, 1.5)))]
    return [*(loop(r, "metal", thick * u(0.8, 1.1)) for r in rings), *parts]


def _modern_key(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    length, half, head = u(0.9, 1.3), u(0.1, 0.15), u(0.32, 0.45)
    n = count(rng, 3, 6)
    places = np.linspace(length * 0.9, 0.15, 2 * n)
    teeth = [(x, half * (1.2 if k % 2 else u(0.15, 0.65))) for k, x in enumerate(places)]
    blade = polygon((-0.1, -half), (length * 0.93, -half), (length, 0), *teeth, (-0.1, half * 1.3))
    bow = pick(
        rng,
        ellipse(-head * 0.8, 0, head, head * u(0.9, 1.25)),
        rectangle(-head * 1.8, -head, 0.05, head, u(0.08, 0.25)),
        transform(ellipse(0, 0, head * 1.05, n=6), rotate=30, shift=(-head * 0.8, 0)),
    )
    groove = line((0, -half * 0.3), (length * 0.8, -half * 0.3))
    return [
        area(blade, "metal"),
        stroke(groove, "dark", 0.03, 2),
        area(bow, pick(rng, "metal", "main")),
        area(ellipse(-head * u(1.0, 1.3), 0, head * u(0.2, 0.4), n=20), "light"),
    ]


def scissors(rng: np.random.Generator) -> Drawing:
    """Scissors, more or less open, pointed or blunt, with round, oval or unequal grips."""
    u = rng.uniform
    opening, blade, shank, thick = u(8, 32), u(0.9, 1.3), u(0.25, 0.5), u(0.16, 0.26)
    blunt, grip, wide, oval = u(0.02, 0.12), u(0.22, 0.34), u(0.07, 0.13), u(0.65, 1.0)
    corners = ((-0.02, -blade), (blunt, -blade * 0.97), (thick, 0), (0.05, shank + 0.08))
    steel = area(polygon(*corners, (-0.09, shank + 0.08), (-0.07, 0.1), (-0.04, 0)), "metal")

    edge = stroke(line((0.02, -blade * 0.85), (0.06, -0.15)), "dark", 0.025, 2)
    blades = [steel, edge] if chance(rng) else [steel]

    def half(size: float) -> list[Part]:
        ring = transform(ellipse(0, 0, size * oval, size), rotate=-u(5, 20))
        ring = transform(ring, shift=(-size * oval * 0.7, shank + size * 0.95))
        return moved([*blades, loop(ring, "main", wide)], rotate=opening)

    uneven = u(1.2, 1.5) if chance(rng, 0.4) else 1.0
    parts = [*half(grip), *moved(half(grip * uneven), flip=True)]
    if chance(rng, 0.8):
        parts += dots([(0, 0.05)], u(0.04, 0.07), pick(rng, "dark", "main"), 1)
    tilt = pick(rng, 0, 0, 45, 90, 180, -60) + u(-20, 20)
    colours = palette(rng, main=(VIVID, ANY, STEEL), metal=STEEL)
    return compose(moved(parts, rotate=tilt), colours)


def hammer(rng: np.random.Generator) -> Drawing:
    """A claw hammer, sledge hammer, mallet or ball-peen hammer."""
    u = rng.uniform
    length, thick = u(1.5, 2.0), u(0.13, 0.2)
    shaft = smooth((0, -0.1), (-thick * 0.1, length * 0.5), (0, length))
    parts = [area(ribbon(shaft, [thick, thick * 0.8, thick * u(1.0, 1.4)]))]
    if chance(rng):
        grip = ribbon(shaft[len(shaft) * 6 // 10 :], [thick, thick * 1.3, thick * 1.3])
        parts.append(area(grip, "second", 1))
    parts += _hammer_head(rng, pick(rng, "claw", "claw", "sledge", "mallet", "ball"))
    tilt = pick(rng, 0, 0, 45, -45, 90) + u(-15, 15)
    colours = palette(rng, main=(WOOD, WOOD, VIVID), metal=STEEL, second=(WOOD, VIVID))
    return compose(moved(parts, rotate=tilt), colours)


def _hammer_head(rng: np.random.Generator, kind: str) -> list[Part]:
    w, h = rng.uniform(0.34, 0.5), rng.uniform(0.12, 0.17)
    if kind in ("sledge", "mallet"):
        h *= rng.uniform(1.5, 2.0)
        block = rectangle(-w * 1.2, -h, w * 1.2, h, rng.uniform(0.04, 0.12))
        bands = both_sides(stroke(line((w * 0.9, -h), (w * 0.9, h)), "dark", 0.04, 1))
        return [area(block, "metal" if kind == "sledge" else "second"), *bands[: 2 * chance(rng)]]
    if kind == "claw":
        bend = ((w * 0.5, -h), (w * 1.1, -h * 0.6), (w * 1.7, h * 2.2), (w, h * 0.9), (w * 0.4, h))
        peen = smooth(*bend, (-0.1, h), (-0.1, -h), closed=True)
    else:
        peen = ellipse(w, 0, h * 1.4)
    face = rectangle(-w * 1.3, -h * 1.35, -w * 0.85, h * 1.35, 0.05)
    neck = rectangle(-w, -h, w * 0.7, h, 0.05)
    return [area(peen, "metal"), area(neck, "metal"), area(face, "metal")]


def ladder(rng: np.random.Generator) -> Drawing:
    """A straight ladder, a tapering one, or a step ladder."""
    u = rng.uniform
    rungs, thick = count(rng, 4, 9), u(0.07, 0.12)
    kind = pick(rng, "straight", "tapering", "step")
    bottom = u(0.3, 0.5)
    top = bottom if kind == "straight" else bottom * u(0.4, 0.75)
    parts: list[Part] = []
    if kind == "step":
        rungs = count(rng, 3, 6)
        spread, lift = u(0.45, 0.75), u(0.05, 0.2)
        for x in (-1, 1):
            strut = line((x * top + 0.05, -1), (x * bottom + spread, 1 - lift))
            parts.append(stroke(strut, "second", thick * 0.7))
    levels = np.linspace(-1, 1, rungs + 2)[1:-1]
    flat = chance(rng, 0.4) or kind == "step"
    for y in levels:
        half = top + (bottom - top) * (y + 1) / 2
        parts.append(stroke(line((-half, y), (half, y)), "main", thick * (1.2 if flat else 0.8)))
    parts += both_sides(stroke(line((top, -1), (bottom, 1)), "main", thick))
    if kind == "step":
        parts.append(area(rectangle(-top * 1.25, -1.1, top * 1.25, -0.98, 0.03), "main"))
    elif chance(rng, 0.3):
        parts += both_sides(stroke(arc(top + 0.12, -1, 0.12, 0.15, 180, 330), "dark", thick))
    lean = u(-25, 25) if kind != "step" else u(-5, 5)
    colours = palette(rng, main=(WOOD, STEEL, VIVID), second=(WOOD, STEEL, ANY))
    return compose(moved(parts, rotate=lean), colours)
