"""Things that carry people: bicycle, car, sailing boat, aeroplane."""

from __future__ import annotations

import numpy as np

from .parts import Drawing, Part, Role
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
    line,
    loop,
    moved,
    palette,
    panes,
    pick,
    polygon,
    rectangle,
    smooth,
    stroke,
    transform,
    turned,
    wheel,
)

SEA: Tone = (0.5, 0.62, 0.4, 0.8, 0.6, 0.9)

# fmt: off
CAR_OUTLINES = {  # from the lower back corner over the roof to the lower front corner
    "saloon": ((-1, 0.25), (-1, -0.02), (-0.62, -0.1), (-0.38, -0.45), (0.22, -0.45),
               (0.5, -0.1), (0.95, -0.02), (1, 0.25)),
    "hatchback": ((-0.85, 0.25), (-0.9, -0.08), (-0.72, -0.48), (0.12, -0.48), (0.45, -0.1),
                  (0.85, -0.02), (0.9, 0.25)),
    "van": ((-1, 0.25), (-1, -0.7), (0.5, -0.7), (0.75, -0.15), (1, -0.05), (1, 0.25)),
    "beetle": ((-0.95, 0.25), (-0.92, -0.05), (-0.6, -0.42), (-0.1, -0.6), (0.3, -0.45),
               (0.5, -0.12), (0.85, -0.02), (0.95, 0.25)),
    "pickup": ((-1, 0.25), (-1, -0.08), (-0.15, -0.08), (-0.08, -0.48), (0.3, -0.48),
               (0.52, -0.08), (0.95, -0.02), (1, 0.25)),
}
# fmt: on
CAR_WINDOWS = {  # where they begin and end: lower and upper back, upper and lower front
    "saloon": (-0.5, -0.3, 0.16, 0.38),
    "hatchback": (-0.74, -0.62, 0.06, 0.34),
    "van": (-0.9, -0.9, 0.42, 0.62),
    "beetle": (-0.55, -0.38, 0.14, 0.32),
    "pickup": (-0.04, -0.01, 0.25, 0.4),
}


def bicycle(rng: np.random.Generator) -> Drawing:
    """A bicycle with a diamond or a step-through frame and one of several handlebars."""
    u = rng.uniform
    r, base, thick = u(0.4, 0.55), u(0.58, 0.68), u(0.05, 0.08)
    parts = _spoked_wheel(rng, r)
    parts = [*moved(parts, shift=(-base, 0)), *moved(parts, shift=(base, 0))]
    crank, seat = (-0.08, 0.05), (-u(0.25, 0.33), -r - u(0.1, 0.25))
    x, y = head = (base - 0.2, -r - u(0.1, 0.25))
    neck, post = (x + 0.05, y + 0.16), (seat[0] * 0.85 - 0.02, seat[1] * 0.75)
    hub = (-base, 0.0)
    tubes = [(hub, crank), (hub, post), (crank, seat), (head, (base, 0.0)), (crank, neck)]
    tubes += [(post, neck)] if chance(rng, 0.7) else []
    parts += [stroke(line(*tube), "main", thick) for tube in tubes]
    bar = pick(
        rng,
        smooth((0, 0), (0.16, -0.02), (0.2, 0.12), (0.06, 0.18)),
        line((0.02, 0), (-0.02, -0.1), (-0.14, -0.12)),
        smooth((0, 0), (0.02, -0.2), (-0.14, -0.26), (-0.24, -0.2)),
    )
    saddle = polygon((-0.2, -0.07), (0.18, -0.05), (0.18, 0), (-0.15, 0.04), radius=0.05)
    pedal = transform(line((0, 0), (0.2, 0)), rotate=u(0, 360), shift=crank)
    parts += [
        stroke(transform(bar, shift=head), "dark", thick),
        area(transform(saddle, u(0.85, 1.15), 0, seat), "dark"),
        loop(ellipse(*crank, u(0.09, 0.14), n=24), "metal", 0.04, 1),
        stroke(pedal, "metal", 0.04, 1),
    ]
    if chance(rng, 0.25):
        basket = polygon((0.08, -0.05), (0.42, -0.05), (0.36, 0.2), (0.12, 0.2))
        parts.append(area(transform(basket, shift=head), "second", 1))
    return compose(parts, palette(rng, main=(VIVID, ANY, DARK), second=(ANY, WOOD), metal=STEEL))


def _spoked_wheel(rng: np.random.Generator, radius: float) -> list[Part]:
    tyre, n = rng.uniform(0.04, 0.08), pick(rng, 0, 6, 8, 12)
    spokes = [transform(line((0, 0), (radius, 0)), rotate=k * 360 / n) for k in range(n)]
    parts = [
        *(stroke(spoke, "metal", 0.015, 2) for spoke in spokes),
        loop(ellipse(0, 0, radius), "dark", tyre),
        *dots([(0, 0)], 0.05, "metal", 1),
    ]
    guard = arc(0, 0, radius + 0.07, radius + 0.07, -160, -40)
    return [*parts, stroke(guard, "second", 0.04, 1)] if chance(rng, 0.3) else parts


def car(rng: np.random.Generator) -> Drawing:
    """A saloon, hatchback, van, beetle or pickup from the side."""
    u = rng.uniform
    kind = pick(rng, *CAR_OUTLINES)
    tall, long, hub, r = u(0.85, 1.35), u(0.85, 1.1), u(0.4, 0.7), u(0.17, 0.24)
    outline = [(x * long, y * tall if y < 0 else y) for x, y in CAR_OUTLINES[kind]]
    rear, rear_top, front_top, front = (x * long for x in CAR_WINDOWS[kind])
    if kind == "van" and chance(rng):
        rear = rear_top = 0.1 * long
    top, sill = min(y for _, y in outline), -0.1 * tall
    body = polygon(*outline, radius=u(0.06, 0.2))
    if kind == "beetle":
        body = np.concatenate([smooth(*outline), line(outline[-1], outline[0])[1:-1]])
    window = ((rear, sill), (rear_top, top * 0.84), (front_top, top * 0.84), (front, sill))
    n = 1 if front - rear < 0.6 else count(rng, 1, 2) + (kind == "van")
    door = front * 0.2
    parts = [
        area(rectangle(-1.04 * long, 0.17, 1.04 * long, 0.27, 0.03), "dark", 1),
        area(body),
        *panes(window, n, u(0.08, 0.2)),
        stroke(line((door, sill + 0.02), (door, 0.2)), "dark", 0.025, 2),
        stroke(line((door - 0.16, 0.03), (door - 0.06, 0.03)), "metal", 0.04, 2),
        area(rectangle(0.84 * long, 0.02, 0.95 * long, 0.12, 0.03), "second", 1),
    ]
    if chance(rng, 0.4):
        parts.append(area(rectangle(-0.8 * long, 0.08, 0.8 * long, 0.15), "second", 2))
    if chance(rng, 0.3) and kind in ("saloon", "hatchback"):
        parts.append(stroke(line((-0.3, top - 0.06), (0.1, top - 0.06)), "metal", 0.04, 1))
    parts += [*wheel(-0.58 * long, 0.27, r, hub), *wheel(0.6 * long, 0.27, r, hub)]
    return compose(parts, palette(rng, main=(VIVID, ANY, LIGHT, STEEL), light=GLASS, metal=STEEL))


def sailing_boat(rng: np.random.Generator) -> Drawing:
    """A sailing boat with one to three sails on one or two masts."""
    u = rng.uniform
    bow, stern, deep, tall, mast = u(0.75, 1), u(0.65, 0.9), u(0.22, 0.4), u(1.2, 1.7), u(-0.1, 0.2)
    deck = smooth((-stern, 0), (0, 0.05), (bow, -u(0, 0.12)))
    keel = smooth((bow * u(0.4, 0.65), deep), (0, deep * 1.08), (-stern * u(0.55, 0.8), deep))
    parts = [stroke(line((mast, 0.1), (mast, -tall)), "dark", u(0.04, 0.07))]
    rig = pick(rng, "sloop", "sloop", "cat", "square", "ketch")
    if rig == "square":
        parts += _square_sails(rng, mast, tall)
    else:
        aft = -stern * (0.5 if rig == "ketch" else u(0.75, 1.0))
        parts.append(_sail(rng, mast - 0.04, aft, -tall * u(0.88, 0.97), "light"))
    if rig in ("sloop", "ketch"):
        role: Role = pick(rng, "light", "second")
        parts.append(_sail(rng, mast + 0.06, bow * u(0.8, 1.0), -tall * u(0.6, 0.9), role))
    if rig == "ketch":
        x = -stern * 0.62
        parts.append(stroke(line((x, 0.05), (x, -tall * 0.65)), "dark", 0.04))
        parts.append(_sail(rng, x - 0.03, -stern * 1.15, -tall * 0.62, "light"))
    if chance(rng):
        flag = polygon((mast, -tall), (mast - 0.25, -tall + 0.07), (mast, -tall + 0.14))
        parts.append(area(flag, "second", 1))
    parts.append(area(np.concatenate([deck, keel])))
    if chance(rng):
        stripe = ((-stern * 0.92, deep * 0.35), (0, deep * 0.4), (bow * 0.85, deep * 0.3))
        parts.append(stroke(smooth(*stripe), "second", 0.06, 2))
    else:
        ports = np.linspace(-0.35, 0.35, count(rng, 2, 4))
        parts += dots([(x, deep * 0.5) for x in ports], 0.05, "light")
    if chance(rng):
        along = np.linspace(-1.1, 1.1, 30)
        wave = np.stack([along, deep + 0.05 + 0.04 * np.sin(along * u(7, 12))], axis=1)
        parts.append(stroke(wave, "metal", 0.06, 2))
    sails = (LIGHT, LIGHT, VIVID)
    colours = palette(rng, main=(VIVID, ANY, WOOD), second=VIVID, light=sails, metal=SEA)
    return compose(parts, colours)


def _sail(rng: np.random.Generator, x: float, end: float, top: float, role: Role) -> Part:
    """A three-cornered sail with its upright edge at x and its foot reaching to the end."""
    foot, belly = -rng.uniform(0.12, 0.22), rng.uniform(0.0, 0.14) * np.sign(end - x)
    leech = smooth((x, top), ((x + end) / 2 + belly, (top + foot) / 2), (end, foot))
    return area(np.concatenate([leech, line((end, foot), (x, foot), (x, top))[1:-1]]), role)


def _square_sails(rng: np.random.Generator, mast: float, tall: float) -> list[Part]:
    swell = rng.uniform(0.0, 0.12)
    parts = []
    for top, low, half in ((-tall * 0.95, -tall * 0.55, 0.4), (-tall * 0.5, -0.15, 0.55)):
        middle = (top + low) / 2
        right = ((half * 0.85, top), (half + swell, middle), (half, low))
        left = ((0, low - 0.08), (-half, low), (-half + swell, middle), (-half * 0.85, top))
        cloth = polygon(*right, *left, radius=0.08)
        parts.append(area(transform(cloth, shift=(mast, 0)), "light"))
    return parts


def aeroplane(rng: np.random.Generator) -> Drawing:
    """An airliner from above or from the side, or a propeller plane."""
    maker, steep = pick(rng, (_plane_above, 180.0), (_plane_beside, 25.0), (_propeller_plane, 20.0))
    parts = moved(maker(rng), rotate=rng.uniform(-steep, steep) * 0.5 - steep * 0.25)
    return compose(parts, palette(rng, main=(LIGHT, STEEL, ANY, VIVID), light=GLASS, metal=STEEL))


def _plane_above(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    slim, span, sweep, chord, at = (
        u(0.09, 0.14),
        u(0.8, 1.1),
        u(0.05, 0.5),
        u(0.3, 0.45),
        -u(0.1, 0.3),
    )
    tip, back = at + sweep, 0.72 + sweep * 0.4
    wing = ((0, at), (span, tip), (span, tip + chord * u(0.3, 0.5)), (0, at + chord))
    tail = ((0, 0.72), (span * 0.38, back), (span * 0.38, back + 0.13), (0, 0.92))
    parts = []
    for x in (0.35 * span, 0.65 * span)[: count(rng, 0, 2)]:
        y = at + sweep * x / span
        engine = rectangle(x - 0.06, y - 0.12, x + 0.06, y + 0.15, 0.05)
        parts += both_sides(area(engine, "dark", 1))
    parts += both_sides(
        area(polygon(*wing, radius=0.03), pick(rng, "main", "second")),
        area(polygon(*tail, radius=0.03), "second"),
    )
    nose = ((-1, 0.02), (-0.85, slim * 0.8), (-0.4, slim))
    return [
        *parts,
        area(turned(*nose, (0.5, slim), (0.98, 0.02))),
        stroke(line((0, 0.65), (0, 0.98)), "second", 0.05, 1),
        area(arc(0, -0.72, slim * 0.8, 0.12, 180, 360), "light", 1),
    ]


def _plane_beside(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    fat, fin, sweep = u(0.13, 0.2), u(0.35, 0.5), u(0.15, 0.35)
    upper = ((1, 0.03), (0.85, -fat * 0.8), (0.55, -fat), (-0.6, -fat), (-1.0, -fat * 0.8))
    lower = ((-0.6, fat * 0.7), (-0.3, fat), (0.6, fat), (0.9, fat * 0.7))
    root, rise, tip = -fat * 0.7, -fat - fin, -0.8 - sweep * 0.4
    tail = ((-0.95, root), (tip - 0.2, rise), (tip, rise), (-0.5, root))
    near, away, out = fat + u(0.3, 0.5), -fat - u(0.2, 0.35), -0.25 - sweep
    wing = ((0.25, fat * 0.2), (out, near), (out - 0.17, near), (-0.2, fat * 0.2))
    far = ((0.15, -fat * 0.8), (out + 0.15, away), (out, away), (-0.15, -fat * 0.8))
    stabiliser = ((-0.72, -0.04), (tip - 0.25, 0.14), (tip - 0.38, 0.12), (-0.96, -0.07))
    cockpit = polygon((0.72, -fat * 0.75), (0.9, -fat * 0.35), (0.72, -fat * 0.3))
    windows = np.linspace(0.55, -0.6, count(rng, 5, 10))
    parts = [
        area(polygon(*far, radius=0.03), "second", 1),
        area(polygon(*tail, radius=0.03), "second"),
        area(smooth(*upper, *lower, closed=True)),
        *dots([(x, -fat * 0.3) for x in windows], 0.04, "dark", 1),
        area(cockpit, "light", 1),
    ]
    if chance(rng, 0.6):
        parts.append(area(rectangle(-0.05, fat * 0.9, 0.22, fat * 0.9 + 0.15, 0.07), "dark", 1))
    parts.append(area(polygon(*wing, radius=0.03), pick(rng, "second", "metal")))
    return [*parts, area(polygon(*stabiliser, radius=0.02), "second")]


def _propeller_plane(rng: np.random.Generator) -> list[Part]:
    u = rng.uniform
    fat, fin, blade = u(0.2, 0.28), -u(0.35, 0.5), u(0.3, 0.45)
    upper = ((0.75, 0), (0.7, -fat * 0.7), (0.3, -fat), (-0.3, -fat * 0.7), (-0.95, -0.12))
    lower = ((-0.95, 0.02), (-0.3, fat * 0.7), (0.3, fat), (0.7, fat * 0.7))
    tail = polygon((-0.95, 0), (-1.05, fin), (-0.85, fin), (-0.6, -0.1), radius=0.06)
    parts = [
        area(tail, "second"),
        area(arc(0, -fat * 0.75, 0.22, 0.24, 180, 360), "light"),
        stroke(line((0.25, fat * 0.8), (0.32, fat + 0.2)), "dark", 0.05),
        area(smooth(*upper, *lower, closed=True)),
    ]
    high, low = -fat - u(0.15, 0.25), fat * 0.5
    levels = pick(rng, (high,), (low,), (low,), (high, low))
    for y in levels:
        wing = polygon((0.45, y), (-0.25, y + 0.02), (-0.3, y + 0.1), (0.4, y + 0.12), radius=0.05)
        parts.append(area(wing, "second"))
    if high in levels:
        struts = [line((x, high + 0.08), (x, -fat * 0.5)) for x in (-0.15, 0.3)]
        parts += [stroke(strut, "dark", 0.04) for strut in struts]
    rudder = polygon((-0.7, -0.07), (-1.1, -0.1), (-1.1, -0.04), (-0.75, 0), radius=0.02)
    return [
        *parts,
        area(rudder, "second"),
        *dots([(0.32, fat + 0.22)], 0.1, "dark", 0),
        area(ellipse(0.82, 0, 0.05, blade), "metal"),
        area(ellipse(0.8, 0, 0.1, 0.08, n=20), "dark", 1),
    ]
