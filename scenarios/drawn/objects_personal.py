"""Things that people carry, wear or play: umbrella, guitar, hat, glasses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .parts import Drawing, Part, Role
from .shapes import (
    ANY,
    BRASS,
    DARK,
    LIGHT,
    STEEL,
    VIVID,
    WOOD,
    Points,
    Tone,
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
    star,
    stroke,
    transform,
    turned,
)

EBONY: Tone = (0.05, 0.09, 0.4, 0.7, 0.2, 0.4)
STRAW: Tone = (0.1, 0.14, 0.3, 0.6, 0.8, 0.98)


def umbrella(rng: np.random.Generator) -> Drawing:
    """An open umbrella with a scalloped edge, plain or in two colours, often at a slant."""
    u = rng.uniform
    high, n, scallop = u(0.55, 1.0), count(rng, 3, 7), u(0.05, 0.16)
    feet = np.linspace(-1, 1, n + 1)
    feet = np.sign(feet) * np.abs(feet) ** u(0.8, 1.0)
    hem = [arc((a + b) / 2, 0, (b - a) / 2, scallop, 0, -180, 8) for a, b in pairwise(feet)]
    ribs = [x * arc(0, 0, 1, 0, 0, 90, 10) + arc(0, 0, 0, -high, 0, 90, 10) for x in feet]
    long, hook, thick = u(0.9, 1.3), u(0.12, 0.22), u(0.05, 0.09)
    parts = [stroke(line((0, -high - u(0.08, 0.2)), (0, long)), "metal", thick)]
    if chance(rng, 0.8):
        straight = line((0, long * 0.75), (0, long))
        crook = np.concatenate([straight, arc(hook, long, hook, hook, 180, 0)[1:]])
        parts.append(stroke(crook, "second", thick * u(1.2, 1.8)))
    else:
        parts.append(area(rectangle(-0.08, long * 0.75, 0.08, long + 0.1, 0.06), "second"))
    parts.append(area(np.concatenate([arc(0, 0, 1, high, 180, 360, 32), *hem[::-1]])))
    for k in range(1, n, 2) if chance(rng, 0.6) else ():
        panel = np.concatenate([ribs[k], ribs[k + 1][-2::-1], hem[k][1:-1]])
        parts.append(area(panel, "light", 1))
    parts += [stroke(rib, "dark", 0.03, 1) for rib in ribs[1:-1]]
    tilt = pick(rng, 0.0, 30.0, 60.0) + u(-12, 12)
    colours = palette(rng, main=(VIVID, ANY, DARK), second=(WOOD, DARK, ANY), light=(LIGHT, VIVID))
    return compose(moved(parts, rotate=tilt), colours)


def guitar(rng: np.random.Generator) -> Drawing:
    """An acoustic guitar, a ukulele or an electric guitar."""
    u = rng.uniform
    kind = pick(rng, "acoustic", "acoustic", "ukulele", "electric")
    neck, strings = (u(0.95, 1.25), 6) if kind != "ukulele" else (u(0.6, 0.75), 4)
    head, half = u(0.28, 0.4), u(0.055, 0.075)
    parts = _electric_body(rng) if kind == "electric" else _acoustic_body(rng)
    parts.append(area(rectangle(-half, -neck, half, 0.32), "second"))
    for y in np.linspace(-neck + 0.1, 0.1, count(rng, 4, 9)):
        parts.append(stroke(line((-half, y), (half, y)), "metal", 0.02, 2))
    crest = ((0.09, 0.0), (0.15, -head), (-0.15, -head), (-0.09, 0.0))
    if kind == "electric":
        crest = ((0.08, 0.0), (0.06, -head), (-0.2, -head * 0.9), (-0.1, 0.0))
    parts.append(area(polygon(*((x, y - neck) for x, y in crest), radius=0.04), "second"))
    sides = (-1,) if kind == "electric" else (-1, 1)
    pegs = [(0.18 * s, -neck - head * t) for s in sides for t in (0.25, 0.55, 0.85)]
    parts += dots(pegs, 0.045, "metal", 1)
    for x in np.linspace(-0.7 * half, 0.7 * half, strings):
        parts.append(stroke(line((x, -neck), (x, 0.9), step=0.4), "light", 0.012, 2))
    tilt = pick(rng, 0, 35, 35, 70, 90) + u(-15, 15)
    finish: tuple[Tone, ...] = (VIVID, DARK, LIGHT) if kind == "electric" else (WOOD, WOOD, ANY)
    colours = palette(rng, main=finish, second=(WOOD, EBONY))
    return compose(moved(parts, rotate=tilt), colours)


def _acoustic_body(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    bout, waist, hip = u(0.36, 0.46), u(0.24, 0.32), u(0.48, 0.62)
    upper = ((0, 0.1), (0.03, bout * 0.7), (0.22, bout), (0.5, waist))
    parts = [
        area(turned(*upper, (0.88, hip), (1.18, hip * 0.6), (1.23, 0.1))),
        area(ellipse(0, 0.42, u(0.13, 0.19)), "dark"),
        area(rectangle(-0.2, 0.86, 0.2, 0.94, 0.02), "dark", 1),
    ]
    return [*parts, loop(ellipse(0, 0.42, 0.22), "second", 0.03, 2)] if chance(rng) else parts


def _electric_body(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    horn, waist, hip = u(0.1, 0.4), u(0.26, 0.33), u(0.46, 0.58)
    right = ((0.1, 0.15), (0.35, -horn * 0.5), (0.42, 0.1), (waist, 0.42), (hip, 0.75), (0.3, 1.12))
    left = ((-0.3, 1.12), (-hip, 0.8), (-waist, 0.45), (-0.48, 0.0), (-0.36, -horn), (-0.12, 0.12))
    parts = [area(smooth(*right, *left, closed=True))]
    if chance(rng):
        guard = smooth((0.1, 0.25), (0.3, 0.3), (0.28, 0.7), (0.05, 0.8), closed=True)
        parts.append(area(guard, "light", 1))
    pickups = np.linspace(0.38, 0.66, count(rng, 1, 3))
    parts += [area(rectangle(-0.18, y, 0.18, y + 0.08, 0.03), "dark", 1) for y in pickups]
    parts += dots([(0.3, 0.75), (0.25, 0.95)], 0.05, "metal")
    return [*parts, area(rectangle(-0.15, 0.88, 0.15, 0.95, 0.02), "dark", 1)]


def hat(rng: np.random.Generator) -> Drawing:
    """A top hat, baseball cap, wide-brimmed hat, cowboy hat or beanie."""
    makers = (_top_hat, _cap, _wide_hat, _cowboy_hat, _beanie)
    parts = pick(rng, *makers)(rng)
    return compose(parts, palette(rng, main=(ANY, VIVID, DARK, WOOD, STRAW), second=(ANY, VIVID)))


def _top_hat(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    tall, half, flare, flat = u(0.7, 1.2), u(0.45, 0.6), u(-0.06, 0.1), u(0.08, 0.18)
    brim = half + u(0.25, 0.45)
    crown = turned((-tall, half + flare), (-tall / 2, half - 0.02), (0, half))
    lid = ellipse(0, -tall, half + flare, flat * 0.8)
    band = ribbon(arc(0, -0.12, half * 0.99, flat * 0.6, 180, 0), u(0.12, 0.22))
    curl = u(0, 0.15)
    rim = smooth(
        (-brim, -curl),
        (-half, flat * 0.9),
        (0, flat * 1.4),
        (half, flat * 0.9),
        (brim, -curl),
        (half, -flat * 0.4),
        (0, -flat * 0.2),
        (-half, -flat * 0.4),
        closed=True,
    )
    return [area(rim), area(crown), area(lid, "main"), area(band, "second", 1)]


def _cap(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    high, peak, dip = u(0.6, 0.85), u(0.55, 0.85), u(0.05, 0.25)
    dome = arc(0, 0, 0.75, high, 180, 360)
    base = smooth((0.75, 0), (0, 0.1), (-0.75, 0))[1:-1]
    visor = smooth(
        (0.25, -0.02), (0.75, -0.12), (0.75 + peak, dip), (0.7, 0.12), (0.2, 0.1), closed=True
    )
    parts = [area(np.concatenate([dome, base])), area(visor, pick(rng, "main", "second"))]
    for x in (-0.35, 0.2):
        seam = smooth((x, 0.05), (x * 0.85, -high * 0.6), (0, -high))
        parts.append(stroke(seam, "dark", 0.03, 2))
    if chance(rng, 0.7):
        parts += dots([(0, -high)], 0.07, "second", 1)
    if chance(rng, 0.5):
        badge = pick(rng, ellipse(0, 0, 1.0, n=20), star(0, 0, 1.3, 0.55, 5))
        parts.append(area(transform(badge, u(0.12, 0.18), 0, (0.42, -high * 0.4)), "light", 1))
    return parts


def _wide_hat(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    half, high, brim, flat = u(0.42, 0.55), u(0.4, 0.65), u(0.9, 1.15), u(0.13, 0.28)
    crown = turned(
        (-high, 0.08), (-high * 0.93, half * 0.6), (-high * 0.5, half * 0.95), (0.06, half)
    )
    band = ribbon(arc(0, -0.06, half * 0.98, flat * 0.4, 180, 0), u(0.1, 0.18))
    parts = [area(ellipse(0, 0, brim, flat)), area(crown), area(band, "second", 1)]
    if chance(rng, 0.4):
        parts += [
            area(ellipse(half * 0.8 + dx, dy, 0.1, n=18), "second", 1)
            for dx, dy in ((-0.1, -0.02), (0.1, -0.02), (0, -0.12), (0, 0.08))
        ]
        parts += dots([(half * 0.8, 0)], 0.06, "light")
    return parts


def _cowboy_hat(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    half, high, lift, brim = u(0.45, 0.55), u(0.6, 0.8), u(0.2, 0.4), u(0.95, 1.15)
    dent = u(0.06, 0.18)
    crown = smooth(
        (-half, 0.05),
        (-half * 0.85, -high * 0.7),
        (-half * 0.45, -high),
        (0, -high + dent),
        (half * 0.45, -high),
        (half * 0.85, -high * 0.7),
        (half, 0.05),
    )
    rim = smooth(
        (-brim, -lift),
        (-half, 0.0),
        (0, 0.0),
        (half, 0.0),
        (brim, -lift),
        (brim * 0.8, 0.12),
        (0, 0.26),
        (-brim * 0.8, 0.12),
        closed=True,
    )
    band = ribbon(smooth((-half, -0.08), (0, -0.02), (half, -0.08)), u(0.1, 0.16))
    parts = [area(crown), area(band, "second", 1), area(rim)]
    if chance(rng, 0.3):
        parts.append(area(star(0, -0.05, 0.12, 0.05, 5), "light", 2))
    return parts


def _beanie(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    high, fold = u(0.8, 1.15), u(0.22, 0.34)
    dome = arc(0, 0, 0.75, high, 180, 360)
    parts = [area(dome)]
    for y in np.linspace(-high * 0.3, -high * 0.7, count(rng, 0, 3)):
        half = 0.75 * np.sqrt(1 - (y / high) ** 2)
        parts.append(stroke(smooth((-half, y), (0, y + 0.06), (half, y)), "light", 0.07, 2))
    parts.append(area(rectangle(-0.82, -0.04, 0.82, fold, 0.08), "second"))
    for x in np.linspace(-0.65, 0.65, count(rng, 5, 9)):
        parts.append(stroke(line((x, 0.02), (x, fold - 0.05)), "dark", 0.025, 2))
    if chance(rng, 0.8):
        r = u(0.14, 0.24)
        parts.append(
            area(transform(star(0, 0, r, r * 0.8, 10), 1, 0, (0, -high - r * 0.6)), "second")
        )
    return parts


def glasses(rng: np.random.Generator) -> Drawing:
    """Spectacles or sunglasses with round, square, cat's-eye or aviator lenses."""
    u = rng.uniform
    kind = pick(rng, "round", "square", "cat", "aviator")
    r, gap, thick = u(0.36, 0.44), u(0.08, 0.16), u(0.05, 0.12)
    x, edge = r + gap, 2 * r + gap
    lens = transform(_lens(rng, kind), r, 0, (x, 0))
    h = -float(lens[:, 1].min())
    glass: Role = pick(rng, "light", "light", "dark", "second")
    parts = both_sides(area(lens, glass), loop(lens, "main", thick))
    bridge = smooth((-gap - 0.05, 0), (0, -u(0.08, 0.16)), (gap + 0.05, 0))
    parts.append(stroke(bridge, "main", thick))
    if kind == "aviator":
        parts.append(stroke(line((-x, -h), (x, -h)), "main", thick * 0.8))
    parts = [*_temples(rng, edge, -h * 0.4, thick), *parts]
    if glass != "dark" and chance(rng):
        glint = stroke(line((x - 0.12, 0.08), (x + 0.08, -0.12)), "metal", 0.03, 2)
        parts += [glint, *moved([glint], shift=(-2 * x, 0))]
    return compose(parts, palette(rng, main=(ANY, DARK, BRASS, STEEL), second=VIVID))


def _lens(rng: np.random.Generator, kind: str) -> Points:
    """The right lens about the origin, about 1 to either side."""
    h = rng.uniform(0.7, 1.0)
    if kind == "round":
        return ellipse(0, 0, 1, max(h, 0.88))
    if kind == "square":
        return rectangle(-1, -h * 0.8, 1, h * 0.8, rng.uniform(0.15, 0.5))
    if kind == "cat":
        upper = ((-0.95, -h * 0.5), (0, -h * 0.7), (1.15, -h), (1.05, -h * 0.1))
        return smooth(*upper, (0.45, h * 0.8), (-0.4, h * 0.75), (-0.95, h * 0.15), closed=True)
    upper = ((-1, -h * 0.7), (0, -h * 0.85), (1, -h * 0.65), (0.95, h * 0.3))
    return smooth(*upper, (0.25, h), (-0.75, h * 0.4), closed=True)


def _temples(rng: np.random.Generator, edge: float, y: float, thick: float) -> list[Part]:
    """The arms seen from the front, bent over the lenses, or stretching away to one side."""
    view = pick(rng, "front", "open", "slanted")
    if view == "front":
        return both_sides(stroke(line((edge - 0.03, y), (edge + 0.1, y - 0.02)), "main", thick))
    if view == "open":
        out = ((edge - 0.03, y), (edge + 0.12, y - 0.08), (edge - 0.05, y - 0.45))
        return both_sides(stroke(smooth(*out, (edge - 0.18, y - 0.5)), "main", thick))
    far, up = rng.uniform(0.3, 0.5, 2)
    way = ((-0.03, 0), (far * 0.6, -up * 0.6), (far, -up), (far + 0.08, 0.14 - up))
    arm = stroke(transform(smooth(*way), shift=(edge, y)), "main", thick)
    return [arm, *moved([arm], shift=(-2 * edge, 0))]
