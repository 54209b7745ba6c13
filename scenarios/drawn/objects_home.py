"""Things of the home: cup, clock, chair, lamp, and the house itself."""

from __future__ import annotations

import numpy as np

from .parts import Drawing, Part
from .shapes import (
    ANY,
    DARK,
    GLASS,
    LIGHT,
    STEEL,
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
    leaf,
    line,
    mirrored,
    moved,
    palette,
    pick,
    polygon,
    rectangle,
    smooth,
    star,
    stroke,
    transform,
    turned,
)

GLOW: Tone = (0.12, 0.16, 0.3, 0.6, 0.95, 1.0)


def cup(rng: np.random.Generator) -> Drawing:
    """A mug, tea cup or beaker with a handle."""
    u = rng.uniform
    kind = pick(rng, "mug", "tea cup", "beaker")
    height, top, bottom, belly = {
        "mug": (u(1.0, 1.35), u(0.5, 0.65), u(0.42, 0.62), u(0.0, 0.12)),
        "tea cup": (u(0.65, 0.95), u(0.6, 0.85), u(0.22, 0.38), u(0.05, 0.2)),
        "beaker": (u(1.4, 1.8), u(0.42, 0.55), u(0.3, 0.42), u(-0.06, 0.05)),
    }[kind]
    flat = u(0.1, 0.3)
    side = smooth((top, 0), ((top + bottom) / 2 + belly, height * 0.6), (bottom, height))
    foot = arc(0, height, bottom, bottom * flat, 0, 180)
    body = np.concatenate([side, foot[1:-1], mirrored(side)[::-1]])
    reach, high, low = u(0.3, 0.45), height * u(0.12, 0.25), height * u(0.65, 0.8)
    x_low = (top + bottom) / 2 + belly * 0.8
    ear = ((top * 0.95, high), (top + reach, high - u(0, 0.08)), (top + reach * u(0.7, 1), low))
    handle = smooth(*ear, (x_low - 0.08, low))
    parts = [stroke(handle, "main", u(0.08, 0.15)), area(body)]
    if kind == "tea cup" and chance(rng, 0.6):
        plate = ellipse(0, height * 1.02, top * u(1.2, 1.5), 0.12 + flat * 0.3)
        parts.insert(0, area(plate, pick(rng, "main", "second"), 1))
    if chance(rng):
        at, thick = height * u(0.35, 0.6), height * u(0.06, 0.2)
        half = np.interp([at, at + thick], side[:, 1], side[:, 0])
        up = arc(0, at, half[0], half[0] * flat, 0, 180)
        down = arc(0, at + thick, half[1], half[1] * flat, 180, 0)
        parts.append(area(np.concatenate([up, down]), "second", 1))
    elif chance(rng):
        badge = pick(rng, ellipse(0, 0, 1.0), star(0, 0, 1.2, 0.5, 5), leaf(0, -1, 90, 2, 1.4))
        parts.append(area(transform(badge, u(0.12, 0.22), 0, (0, height * 0.6)), "second", 1))
    parts.append(area(ellipse(0, 0, top, top * flat), "light"))
    parts.append(area(ellipse(0, 0.03, top * 0.85, top * flat * 0.75), "dark", 1))
    for x in np.linspace(-0.25, 0.25, count(rng, 0, 3) if chance(rng, 0.4) else 0):
        steam = smooth((x, -0.25), (x + 0.08, -0.38), (x - 0.06, -0.52), (x + 0.04, -0.66))
        parts.append(stroke(steam, "light", 0.05, 2))
    return compose(parts, palette(rng, main=(ANY, VIVID, LIGHT)))


def clock(rng: np.random.Generator) -> Drawing:
    """A round or square wall clock, an alarm clock with bells, or a mantel clock."""
    u = rng.uniform
    kind = pick(rng, "round", "square", "alarm", "mantel")
    parts = _clock_case(rng, kind)
    inner = u(0.82, 0.93) if kind != "mantel" else u(0.7, 0.85)
    square_face = kind == "square" and chance(rng, 0.6)
    face = rectangle(-inner, -inner, inner, inner, 0.1) if square_face else ellipse(0, 0, inner)
    parts.append(area(face, "light"))
    marks, long, thick = pick(rng, 4, 12, 12), u(0.08, 0.2), u(0.06, 0.11)
    for k in range(marks):
        mark = transform(line((0.92 - long, 0), (0.92, 0)), inner, k * 360 / marks)
        parts.append(stroke(mark, "dark", 0.05, int(k % (marks // 4) > 0)))
    for reach, width in ((u(0.45, 0.55), thick), (u(0.7, 0.85), thick * 0.75)):
        hand = line((-0.08, 0), (reach * inner, 0))
        parts.append(stroke(transform(hand, rotate=u(0, 360)), "dark", width))
    parts += dots([(0, 0)], thick * 0.8, pick(rng, "dark", "second"))
    return compose(parts, palette(rng, main=(ANY, VIVID, WOOD, STEEL)))


def _clock_case(rng: np.random.Generator, kind: str) -> list[Part]:
    u = rng.uniform
    if kind == "square":
        return [area(rectangle(-1, -1, 1, 1, u(0.02, 0.4)))]
    if kind == "mantel":
        wide = u(1.15, 1.4)
        arch = arc(0, 0, 1.0, 1.0, 180, 360)
        skirt = line((1.1, 0.6), (wide, 1.15), (-wide, 1.15), (-1.1, 0.6))
        foot = rectangle(-wide, 1.1, wide, 1.3, 0.05)
        return [area(np.concatenate([arch, skirt])), area(foot, "dark")]
    case = [area(ellipse(0, 0, 1.0, n=48))]
    if kind == "round":
        return case
    bell = transform(arc(0, 0, 0.36, 0.36, 180, 360), 1, 38, (0.58, -0.86))
    return [
        *both_sides(stroke(line((0.45, 0.7), (0.72, 1.12)), "dark", u(0.1, 0.16))),
        *both_sides(area(bell, "metal")),
        stroke(line((0, -0.9), (0, -1.25)), "dark", 0.08),
        stroke(arc(0, -0.95, 0.32, 0.32, -130, -50), "dark", 0.06, 1),
        *case,
    ]


def chair(rng: np.random.Generator) -> Drawing:
    """A chair from the side or from the front, or an office chair."""
    kind = pick(rng, "side", "front", "front", "office")
    parts = {"side": _side_chair, "front": _front_chair, "office": _office_chair}[kind](rng)
    return compose(parts, palette(rng, main=(WOOD, WOOD, ANY), metal=STEEL))


def _side_chair(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    seat, back, leg, thick, splay = (
        u(0.8, 1.05),
        u(0.9, 1.3),
        u(0.75, 1.0),
        u(0.09, 0.15),
        u(0, 0.2),
    )
    lean = u(0.02, 0.25)
    parts = [
        stroke(smooth((-lean, -back), (-0.02, -back / 2), (0.05, 0), (-splay, leg)), "main", thick),
        stroke(line((seat - 0.06, 0), (seat + splay * 0.5, leg)), "main", thick),
    ]
    if chance(rng, 0.4):
        parts.append(stroke(line((0, leg * 0.55), (seat, leg * 0.55)), "main", thick * 0.7, 1))
    if chance(rng, 0.35):
        arm = line((-lean / 2, -back * 0.4), (seat * 0.8, -back * 0.4), (seat * 0.8, 0))
        parts.append(stroke(arm, "main", thick * 0.8))
    if chance(rng, 0.5):
        parts.append(area(rectangle(0.0, -0.06 - u(0.05, 0.12), seat, 0, 0.06), "second"))
    parts.append(area(rectangle(-0.04, -0.06, seat + 0.04, 0.08, 0.04)))
    return parts


def _front_chair(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    half, back, leg, deep, thick = (
        u(0.42, 0.6),
        u(0.8, 1.3),
        u(0.7, 0.95),
        u(0.2, 0.4),
        u(0.08, 0.14),
    )
    front = half + u(0.05, 0.15)
    top = -back
    parts = both_sides(stroke(line((half * 0.85, 0), (half * 0.85, leg * 0.75)), "dark", thick))
    style = pick(rng, "slats", "bars", "solid", "round")
    if style == "solid":
        parts.append(area(rectangle(-half, top, half, -back * 0.25, u(0.03, 0.25)), "second"))
    elif style == "round":
        parts.append(area(ellipse(0, top * 0.62, half * 1.05, back * 0.38), "second"))
    n = count(rng, 2, 4)
    if style == "slats":
        for x in np.linspace(-half, half, n + 2)[1:-1]:
            parts.append(stroke(line((x, top), (x, 0)), "main", thick * 0.7))
    if style in ("slats", "bars"):
        rows = np.linspace(top + 0.05, -0.1, n + 1)[:-1] if style == "bars" else [top]
        for y in rows:
            rail = smooth((-half, y), (0, y - 0.04), (half, y))
            parts.append(stroke(rail, "main", thick * 1.4))
    foot = half + u(0, 0.1)
    parts += both_sides(
        stroke(line((half, top), (half, 0.05)), "main", thick),
        stroke(line((front - 0.06, deep), (max(front - 0.06, foot), deep + leg)), "main", thick),
    )
    if chance(rng, 0.35):
        arm = line((half, -back * 0.4), (front + 0.02, -back * 0.3), (front, deep))
        parts += both_sides(stroke(arm, "main", thick))
    seat = polygon((-half, 0), (half, 0), (front, deep), (-front, deep), radius=0.05)
    apron = rectangle(-front, deep, front, deep + u(0.07, 0.14))
    return [*parts, area(seat, pick(rng, "main", "second")), area(apron)]


def _office_chair(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    half, back, post, feet = u(0.45, 0.6), u(0.8, 1.1), u(0.45, 0.65), u(0.5, 0.65)
    ground = post + 0.25
    parts = [
        stroke(line((0, -0.3), (0, post)), "metal", u(0.1, 0.16)),
        area(rectangle(-half * 0.9, -0.25 - back, half * 0.9, -0.18, u(0.1, 0.3)), "main"),
        *both_sides(stroke(line((0, post), (feet, ground - 0.08)), "dark", 0.1)),
        stroke(line((0, post), (0, ground)), "dark", 0.1),
        *dots([(-feet, ground), (0, ground + 0.05), (feet, ground)], 0.09, "dark", 0),
        area(rectangle(-half, -0.1, half, 0.12, 0.1), pick(rng, "main", "second")),
    ]
    if chance(rng, 0.7):
        arm = line((half, 0), (half + 0.14, 0), (half + 0.14, -0.4), (half - 0.02, -0.4))
        parts += both_sides(stroke(arm, "dark", u(0.07, 0.12)))
    return parts


def lamp(rng: np.random.Generator) -> Drawing:
    """A table lamp, a jointed desk lamp or a floor lamp."""
    kind = pick(rng, "table", "desk", "floor")
    parts = {"table": _table_lamp, "desk": _desk_lamp, "floor": _floor_lamp}[kind](rng)
    return compose(parts, palette(rng, light=GLOW))


def _shade(rng: np.random.Generator, top: float, bottom: float, height: float) -> list[Part]:
    """A lamp shade with its lower edge at y = 0."""
    flare = rng.uniform(-0.08, 0.03)
    cone = turned((-height, top), (-height / 2, (top + bottom) / 2 + flare), (0, bottom))
    parts = [area(cone)]
    if chance(rng, 0.4):
        parts.append(area(turned((-height * 0.2, bottom * 0.9), (0, bottom)), "second", 2))
    elif chance(rng, 0.5):
        for x in np.linspace(-0.6, 0.6, count(rng, 2, 5)):
            parts.append(stroke(line((x * top, -height), (x * bottom, 0)), "second", 0.04, 2))
    return parts


def _table_lamp(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    stem, foot = u(0.75, 1.1), u(0.28, 0.42)
    neck, waist = u(0.05, 0.09), u(0.12, 0.36)
    base = pick(
        rng,
        turned((0, neck), (stem * 0.25, neck), (stem * 0.6, waist), (stem, foot * 0.7)),
        turned((0, neck), (stem * 0.3, waist), (stem * 0.75, neck * 1.5), (stem, foot)),
        turned((0, neck), (stem * 0.88, neck), (stem * 0.9, foot), (stem, foot), straight=True),
    )
    bottom = u(0.55, 0.8)
    parts = [area(ellipse(0, 0.02, 0.14, 0.16, n=24), "light", 1), area(base, "second")]
    parts += _shade(rng, bottom * u(0.4, 0.75), bottom, u(0.6, 0.9))
    if chance(rng, 0.4):
        x = bottom * 0.5
        parts += [stroke(line((x, 0), (x, 0.3)), "dark", 0.03, 2), *dots([(x, 0.32)], 0.05, "dark")]
    return parts


def _desk_lamp(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    thick = u(0.06, 0.1)
    elbow, shoulder = (-u(0.25, 0.55), -u(0.5, 0.7)), (u(0.2, 0.5), -u(1.15, 1.4))
    head, turn = u(0.45, 0.6), u(-60, -25)
    cone = polygon((-0.1, -0.1), (0.1, -0.1), (head * 0.6, head), (-head * 0.6, head), radius=0.05)
    bulb = ellipse(0, head, head * 0.3, head * 0.25, n=24)
    lamp_head = [area(bulb, "light"), area(cone)]
    foot = turned((0, 0.1), (0.06, u(0.3, 0.45)), (0.16, u(0.4, 0.5)), straight=True)
    return [
        area(foot, "second"),
        stroke(line((0, 0), elbow), "metal", thick),
        stroke(line(elbow, shoulder), "metal", thick),
        *dots([elbow], thick * 0.9, "dark", 1),
        *moved(lamp_head, rotate=turn, shift=shoulder),
    ]


def _floor_lamp(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    tall, bottom, thick = u(1.5, 2.0), u(0.38, 0.6), u(0.05, 0.09)
    parts: list[Part] = []
    if chance(rng, 0.4):
        foot, knee = u(0.4, 0.6), tall * u(0.0, 0.35)
        parts += both_sides(stroke(line((0, knee), (foot, tall)), "second", thick))
        parts.append(stroke(line((0, -0.2), (0, tall)), "second", thick))
    else:
        base = turned((tall - 0.1, 0.06), (tall - 0.05, u(0.25, 0.4)), (tall, u(0.3, 0.42)))
        parts += [stroke(line((0, -0.2), (0, tall)), "second", thick), area(base, "second")]
    return parts + _shade(rng, bottom * u(0.4, 0.8), bottom, u(0.45, 0.7))


def house(rng: np.random.Generator) -> Drawing:
    """A house with a gabled, hipped or curb roof, seen from the front or the corner."""
    u = rng.uniform
    half, floors, eaves, peak = u(0.55, 0.95), count(rng, 1, 3), u(0.06, 0.18), u(0.5, 0.9)
    tall, edge = 0.5 * floors + u(0.1, 0.3), half + eaves
    knee = half * 0.75
    kind = pick(rng, "gable", "corner", "hip", "curb")
    ridge = {
        "gable": ((u(-0.1, 0.1), -peak),),
        "corner": ((0.0, -peak),),
        "hip": ((-half * 0.6, -peak * 0.8), (half * 0.6, -peak * 0.8)),
        "curb": ((-knee, -peak * 0.6), (0.0, -peak), (knee, -peak * 0.6)),
    }[kind]
    parts = _chimney(rng, half, peak) if chance(rng, 0.6) else []
    if kind == "corner":
        deep = u(0.5, 0.9)
        slope = ((0, -peak), (deep, -peak), (edge + deep, 0), (edge, 0))
        parts += [area(rectangle(half, 0, half + deep, tall)), area(polygon(*slope), "second")]
        parts += _window(half + deep * 0.55, tall * u(0.35, 0.6), u(0.11, 0.16))
    parts.append(area(rectangle(-half, 0, half, tall)))
    parts.append(area(polygon((-edge, 0), *ridge, (edge, 0)), "second"))
    columns, size = count(rng, 2, 3 if half > 0.7 else 2), u(0.11, 0.16)
    door, arched = count(rng, 0, columns - 1), chance(rng, 0.3)
    for k, x in enumerate(np.linspace(-half, half, 2 * columns + 1)[1::2]):
        for floor in range(int(k == door), floors):
            parts += _window(x, tall - 0.32 - 0.5 * floor, size)
        if k == door:
            panel = rectangle(x - 0.12, tall - 0.4, x + 0.12, tall, 0.1 * arched)
            parts += [area(panel, "dark"), *dots([(x + 0.07, tall - 0.18)], 0.025, "metal")]
    if chance(rng, 0.35):
        parts.append(area(ellipse(0, -peak * 0.35, 0.12, n=24), "light", 1))
    colours = palette(rng, main=(ANY, LIGHT, WOOD), light=(LIGHT, GLASS), dark=(DARK, WOOD))
    return compose(parts, colours)


def _window(x: float, y: float, size: float) -> list[Part]:
    return [
        area(rectangle(x - size, y - 0.14, x + size, y + 0.14), "light"),
        stroke(line((x, y - 0.14), (x, y + 0.14)), "dark", 0.025, 2),
        stroke(line((x - size, y), (x + size, y)), "dark", 0.025, 2),
    ]


def _chimney(rng: np.random.Generator, half: float, peak: float) -> list[Part]:
    x, top = half * pick(rng, -1, 1) * rng.uniform(0.4, 0.6), -peak * rng.uniform(0.75, 1.0) - 0.1
    parts = [area(rectangle(x - 0.09, top, x + 0.09, 0), "dark")]
    if chance(rng, 0.4):
        curl = ((x, top - 0.08), (x + 0.1, top - 0.2), (x, top - 0.32), (x + 0.12, top - 0.45))
        parts.append(stroke(smooth(*curl), "light", 0.06, 2))
    return parts
