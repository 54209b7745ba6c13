"""Things that grow: tree, apple, flower, mushroom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .parts import Drawing, Part
from .shapes import (
    AUTUMN,
    LEAF,
    LIGHT,
    VIVID,
    WOOD,
    Tone,
    arc,
    area,
    both_sides,
    chance,
    cloud,
    compose,
    count,
    dots,
    ellipse,
    leaf,
    line,
    loop,
    mirrored,
    moved,
    palette,
    petal,
    pick,
    polygon,
    rectangle,
    ribbon,
    smooth,
    stroke,
    transform,
    turned,
)

BARK: Tone = (0.05, 0.1, 0.5, 0.8, 0.15, 0.35)
CLAY: Tone = (0.02, 0.08, 0.5, 0.8, 0.5, 0.85)
FLESH: Tone = (0.12, 0.16, 0.08, 0.3, 0.92, 1.0)
FLY_AGARIC: Tone = (-0.03, 0.04, 0.75, 0.95, 0.6, 0.95)
PALE: Tone = (0.08, 0.14, 0.05, 0.25, 0.85, 1.0)
PETAL: Tone = (0.6, 1.17, 0.4, 0.95, 0.65, 1.0)
POLLEN: Tone = (0.11, 0.16, 0.6, 0.95, 0.85, 1.0)
SKINS: tuple[Tone, ...] = (
    (-0.04, 0.03, 0.7, 0.95, 0.5, 0.9),
    (0.2, 0.3, 0.5, 0.9, 0.55, 0.85),
    (0.11, 0.16, 0.6, 0.9, 0.8, 0.98),
)


def tree(rng: np.random.Generator) -> Drawing:
    """A broad-leaved tree, a conifer, a poplar or a palm."""
    crown = pick(rng, _round_crown, _round_crown, _conifer, _poplar, _palm)
    trunk, thick = rng.uniform(0.5, 0.9), rng.uniform(0.12, 0.3)
    foot = thick * rng.uniform(0.7, 1.2)
    bole = turned((0, thick * 0.6), (trunk * 0.5, thick * 0.6), (trunk, foot))
    parts = crown(rng) if crown is _palm else [area(bole, "second"), *crown(rng)]
    leaves = (LEAF,) if crown in (_palm, _conifer) else (LEAF, LEAF, AUTUMN)
    return compose(parts, palette(rng, main=leaves, second=WOOD, light=VIVID))


def _round_crown(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    if chance(rng, 0.6):
        parts = [area(cloud(0, -0.5, u(0.75, 1.0), u(0.6, 0.85), count(rng, 6, 12)))]
    else:
        balls = ((-0.4, -0.25, u(0.4, 0.5)), (0.4, -0.25, u(0.4, 0.5)), (0, -0.65, 0.55))
        parts = [area(ellipse(x, y, r, r * u(0.85, 1.0))) for x, y, r in balls]
    if chance(rng, 0.35):
        fruit = list(zip(u(-0.5, 0.5, 6), u(-0.85, -0.15, 6), strict=True))
        parts += dots(fruit, u(0.05, 0.09), pick(rng, "light", "dark"))
    elif chance(rng):
        parts += both_sides(stroke(line((0, 0.25), (0.25, -0.25)), "second", 0.08, 1))
    return parts


def _conifer(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    tiers, half, tall, droop = count(rng, 1, 5), u(0.5, 0.8), u(1.2, 1.7), u(0.0, 0.1)
    step = tall / (tiers + 0.6)
    parts = []
    for k in range(tiers):
        y, w = -k * step, half * (1 - 0.6 * k / tiers)
        hem = smooth((-w, y + droop), (0, y + 0.02), (w, y + droop))
        sides = line((w, y + droop), (0, y - step * 1.6), (-w, y + droop))
        parts.append(area(np.concatenate([hem, sides[1:-1]])))
    return parts


def _poplar(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    flame = ((-1.7, 0.03), (-1.3, u(0.2, 0.3)), (-0.5, u(0.35, 0.5)), (0.0, u(0.25, 0.4)))
    return [area(turned(*flame, (0.12, 0.05)))]


def _palm(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    lean, thick, n = u(-0.35, 0.35), u(0.12, 0.2), count(rng, 5, 8)
    trunk = smooth((lean, 1.3), (lean * 0.9, 0.6), (lean * 0.4, 0.0), (0, -0.4))
    parts = [area(ribbon(trunk, [thick * 1.4, thick, thick * 0.8]), "second")]
    for x, y in trunk[3:-3:3] if chance(rng) else []:
        parts.append(stroke(line((x - thick / 2, y), (x + thick / 2, y)), "dark", 0.03, 2))
    for angle in np.linspace(-190, 10, n) + u(-8, 8, n):
        c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        reach, sag = u(0.75, 0.95), u(0.25, 0.5)
        frond = smooth(
            (0, -0.4),
            (c * reach * 0.55, -0.45 + s * reach * 0.5),
            (c * reach, -0.4 + s * reach * 0.5 + sag),
        )
        parts.append(area(ribbon(frond, [0.06, u(0.16, 0.26), 0.14, 0.01])))
    nuts = [(-0.1, -0.3), (0.1, -0.3), (0, -0.25)][: count(rng, 0, 3)]
    return parts + dots(nuts, 0.08, "dark", 1)


def apple(rng: np.random.Generator) -> Drawing:
    """An apple: whole, bitten or cut in half."""
    u = rng.uniform
    wide, tall, top, lean = u(0.85, 1.0), u(0.8, 1.0), -u(0.45, 0.6), u(-0.25, 0.25)
    upper = ((0, top), (wide * 0.45, -tall * 0.85), (wide, -tall * 0.3))
    lower = ((wide * u(0.75, 0.9), tall * 0.4), (wide * 0.4, tall), (0, tall * 0.92))
    right = smooth(*upper, *lower, n=14)
    body = np.concatenate([right, mirrored(right)[-2:0:-1]])
    kind = pick(rng, "whole", "whole", "bitten", "cut")
    if kind == "bitten":
        centre, bite = np.array([wide * u(1.08, 1.18), u(-0.25, 0.15)]), u(0.38, 0.52)
        away = body - centre
        reach = np.hypot(away[:, :1], away[:, 1:])
        body = centre + away * np.maximum(bite / reach, 1)
    parts = [area(body)]
    if kind == "cut":
        parts.append(area(transform(body, u(0.86, 0.92)), "light"))
        parts.append(loop(transform(body, (0.3, 0.35)), "second", 0.04, 1))
        parts += both_sides(area(leaf(0.1, -0.12, 80, 0.25, 0.14), "dark", 1))
    elif chance(rng, 0.6):
        shine = smooth((-wide * 0.6, -tall * 0.4), (-wide * 0.7, -0.1), (-wide * 0.62, tall * 0.2))
        parts.append(stroke(shine, "light", u(0.06, 0.12), 2))
    stem = smooth((0, top + 0.08), (lean * 0.3, top - 0.2), (lean, top - u(0.35, 0.5)))
    parts.append(stroke(stem, "dark", u(0.06, 0.11)))
    for angle in pick(rng, (), (-35,), (-35,), (-35, -145)):
        blade = leaf(lean * 0.2, top - 0.15, angle + u(-18, 18), u(0.4, 0.6), u(0.18, 0.3))
        parts.append(area(blade, "second"))
    return compose(parts, palette(rng, main=SKINS, second=LEAF, light=FLESH, dark=BARK))


def flower(rng: np.random.Generator) -> Drawing:
    """A daisy, sunflower, five-petalled flower or tulip on a stem, sometimes in a pot."""
    u = rng.uniform
    kind = pick(rng, "daisy", "blossom", "sunflower", "tulip")
    tall, bend, size = u(1.0, 1.7), u(-0.25, 0.25), u(0.45, 0.7)
    stem = smooth((0, 0), (bend, tall * 0.5), (0, tall))
    parts = [stroke(stem, "second", u(0.05, 0.1))]
    for k in range(count(rng, 0, 3)):
        x, y = stem[len(stem) * (8 - 2 * k) // 10]
        angle = (-u(20, 60), -180 + u(20, 60))[k % 2]
        parts.append(area(leaf(x, y, angle, u(0.4, 0.7), u(0.16, 0.3)), "second"))
    parts += _tulip(rng, size) if kind == "tulip" else _blossom(rng, kind, size)
    if chance(rng, 0.25):
        sides = ((-0.4, tall - 0.3), (0.4, tall - 0.3), (0.28, tall + 0.3), (-0.28, tall + 0.3))
        rim = rectangle(-0.45, tall - 0.35, 0.45, tall - 0.2, 0.03)
        parts += [area(polygon(*sides), "metal"), area(rim, "metal", 1)]
    petals = (AUTUMN,) if kind == "sunflower" else (PETAL, PETAL, LIGHT)
    colours = palette(rng, main=petals, second=LEAF, light=(POLLEN, LIGHT), metal=CLAY, dark=BARK)
    return compose(parts, colours)


def _tulip(rng: np.random.Generator, size: float) -> list[Part]:
    half = size * rng.uniform(0.65, 0.95)
    return [
        area(leaf(x * half, 0.08, -90 + turn, size * rng.uniform(1.6, 2.0), half * 1.3))
        for x, turn in ((-0.22, -8), (0.22, 8), (0, 0))
    ]


def _blossom(rng: np.random.Generator, kind: str, size: float) -> list[Part]:
    low, high, width, heart = {
        "daisy": (8, 14, 0.3, 0.3),
        "blossom": (5, 7, 0.8, 0.28),
        "sunflower": (12, 20, 0.28, 0.5),
    }[kind]
    n, turn = count(rng, low, high), rng.uniform(0, 360)
    wide = size * rng.uniform(0.8, 1.1) * (width * 5.5 / n if kind == "blossom" else width)
    shape = leaf if kind == "sunflower" else petal
    parts = [area(shape(0, 0, turn + k * 360 / n, size, wide)) for k in range(n)]
    disc = ellipse(0, 0, size * heart * rng.uniform(0.85, 1.15))
    return [*parts, area(disc, "dark" if kind == "sunflower" else "light")]


def mushroom(rng: np.random.Generator) -> Drawing:
    """A mushroom with a domed, flat or pointed cap, alone or with a small one."""
    parts = _one_mushroom(rng)
    if chance(rng, 0.35):
        small = _one_mushroom(rng)
        drop = _lowest(parts) - 0.45 * _lowest(small)
        small = moved(small, 0.45, shift=(rng.uniform(0.5, 0.7), drop))
        parts = [*(replace(p, detail=max(p.detail, 1)) for p in small), *parts]
    return compose(parts, palette(rng, main=(VIVID, WOOD, FLY_AGARIC), light=PALE, second=WOOD))


def _one_mushroom(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    cap, high, tall = u(0.65, 1.0), u(0.4, 1.0), u(0.6, 1.1)
    thick, foot, edge = u(0.14, 0.28), u(0.9, 1.8), u(0.08, 0.2)
    profile = ((-0.1, thick), (tall * 0.5, thick), (tall * 0.85, thick * foot))
    parts = [area(turned(*profile, (tall, thick * foot * 0.8)), "light")]
    if chance(rng, 0.4):
        skirt = turned((0.2, thick), (0.38, thick * 1.7), straight=True)
        parts.append(area(skirt, "light", 1))
    full = cap * u(0.6, 0.97)
    shoulder = ((full, -high * 0.55), (cap, 0))
    dome = smooth(*((-x, y) for x, y in shoulder[::-1]), (0, -high), *shoulder)
    parts.append(area(np.concatenate([dome, arc(0, 0, cap, edge, 0, 180)[1:-1]])))
    spots = chance(rng, 0.6)
    if chance(rng, 0.4) or not spots:
        parts.append(area(ellipse(0, 0, cap * 0.93, edge * 0.8), "second"))
    for k, t in enumerate(np.linspace(-0.6, 0.6, count(rng, 3, 6)) if spots else ()):
        y = -high * (0.25 + u(0.1, 0.6) * (1 - abs(t)))
        r = u(0.06, 0.14)
        parts.append(area(ellipse(full * t, y, r, r * 0.8, n=18), "light", k % 2))
    return parts


def _lowest(parts: list[Part]) -> float:
    return max(float(p.points[:, 1].max()) for p in parts)
