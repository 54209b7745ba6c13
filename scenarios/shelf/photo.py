"""A photograph of a thing at a place: posed, marked, lit, and put in front of the background.

The thing is drawn at twice the size inside its own box and shrunk, everything else at the size of
the picture: that is what makes it fast.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from PIL import Image, ImageFilter

from ..drawn.canvas import Frame, label_map
from ..drawn.parts import Colour, Drawing, Part, Role
from ..drawn.shapes import area, smooth, stroke
from .film import Shot
from .individuals import COLOURS, Individual
from .marks import PATTERNS
from .sessions import Session
from .things import THINGS, Shape, Thing

FINE = 2  # how much finer the thing is drawn
USUAL: dict[Role, Colour] = {
    "dark": (48, 40, 38),
    "light": (236, 230, 214),
    "metal": (150, 152, 158),
}
SKIN: Colour = (222, 168, 138)


def photo(
    who: Individual,
    place: np.ndarray,
    session: Session,
    shot: Shot,
    rng: np.random.Generator,
    size: int,
) -> np.ndarray:
    """The picture, (size, size, 3) bytes, of a thing in front of a piece of the place."""
    thing = THINGS[who.kind](who.shape, shot.turn)
    lit, cover = _thing(who, thing, session, shot, size)
    scene = _background(place, shot, size)
    x, y, dark = session.shadow
    if dark:
        shadow = _shadow(cover, round(x * size), round(y * size), size)
        scene = scene * (1 - dark * shadow)[..., None]
    scene = scene * (1 - cover)[..., None] + session.on_thing * lit
    scene *= _light(session, size) * np.float32(shot.exposure)
    scene = scene * (1 - session.haze) + 255 * session.haze
    if session.blur:
        image = Image.fromarray(np.clip(scene, 0, 255).astype(np.uint8))
        scene = np.asarray(image.filter(ImageFilter.BoxBlur(session.blur * size)), np.float32)
    noise = rng.standard_normal(scene.shape, dtype=np.float32) * session.noise
    return np.clip(scene + noise, 0, 255).astype(np.uint8)


def _background(place: np.ndarray, shot: Shot, size: int) -> np.ndarray:
    left, top = round(shot.left * size), round(shot.top * size)
    return place[top : top + size, left : left + size]


def _thing(
    who: Individual, thing: Thing, session: Session, shot: Shot, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lit thing, black around it, and how much of every pixel it covers."""
    side = FINE * size
    frame = Frame(side, np.array(shot.centre) * side, shot.size * side / 2)
    own = {**USUAL, "main": COLOURS[who.colour], "second": COLOURS[who.mark_colour]}
    posed = _posed(who, thing, shot)
    arm, fingers = _hand(posed, shot) if session.hand else ([], [])
    parts = [*arm, *posed, *fingers]
    colours = [SKIN] * len(arm) + [own[p.role] for p in posed] + [SKIN] * len(fingers)
    # Label 0 is the background, and one more than there are parts stands for the marks.
    palette = np.array([(0, 0, 0), *colours, own["second"]], np.float32)
    body, mark = 1 + len(arm) + thing.body, len(parts) + 1

    whole = label_map(Drawing(tuple(parts), own), frame)
    top, bottom = _extent(whole.max(axis=1))
    left, right = _extent(whole.max(axis=0))
    labels = whole[top:bottom, left:right].copy()
    on_body = labels == body
    down, across = np.nonzero(on_body)
    marked = _marked(who, thing, shot, *_on_thing(who, shot, frame, across + left, down + top))
    labels[on_body] = np.where(marked, mark, body)

    bright, shine = _shading(parts, labels, body, frame, session, left, top)
    lit = palette[labels] * bright[..., None] + shine[..., None]
    seen = (labels > 0).astype(np.float32)
    picture = np.zeros((size, size, 3), np.float32)
    cover = np.zeros((size, size), np.float32)
    box = (slice(top // FINE, bottom // FINE), slice(left // FINE, right // FINE))
    picture[box] = _shrunk(lit * seen[..., None])
    cover[box] = _shrunk(seen)
    return picture, cover


def _extent(filled: np.ndarray) -> tuple[int, int]:
    """The first and last filled place, moved outwards to whole pixels of the picture."""
    places = np.flatnonzero(filled)
    return int(places[0]) // FINE * FINE, -(-(int(places[-1]) + 1) // FINE) * FINE


def _posed(who: Individual, thing: Thing, shot: Shot) -> list[Part]:
    """The parts of the thing as the camera sees them, about [-1, 1]."""
    matrix = _matrix(shot)
    fit, shift = _fit(who.kind, who.shape)
    return [
        replace(p, points=(p.points * fit + shift) @ matrix, width=p.width * fit)
        for p in thing.parts
    ]


def _on_thing(
    who: Individual, shot: Shot, frame: Frame, across: np.ndarray, down: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fine pixels to object coordinates: the way of `_posed` back."""
    fit, shift = _fit(who.kind, who.shape)
    pixels = np.stack([across, down], axis=1) + 0.5
    seen = (pixels - frame.centre) / frame.radius
    x, y = ((seen @ np.linalg.inv(_matrix(shot)) - shift) / fit).T
    return x, y


def _matrix(shot: Shot) -> np.ndarray:
    """Object coordinates, as rows, to the picture's: mirrored, squashed, rolled."""
    c, s = np.cos(shot.roll), np.sin(shot.roll)
    flip = -1.0 if shot.flip else 1.0
    return np.diag([flip, shot.squash]) @ np.array([[c, s], [-s, c]])


@lru_cache(maxsize=64)
def _fit(kind: str, shape: Shape) -> tuple[float, np.ndarray]:
    """Scale and shift that make the thing fill [-1, 1] when it is seen from the front."""
    points = np.concatenate([part.points for part in THINGS[kind](shape, 0.0).parts])
    low, high = points[:, 1].min(), points[:, 1].max()
    wide = float(max(high - low, 2 * np.abs(points[:, 0]).max()))
    return 2.0 / wide, np.array([0.0, -(low + high) / wide])


def _marked(who: Individual, thing: Thing, shot: Shot, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether the body has its second colour at these points, given in object coordinates."""
    height = (thing.bottom - thing.top) / 2
    middle = (thing.bottom + thing.top) / 2
    width = thing.width
    if thing.round:
        half = np.interp(y, thing.heights, thing.halves)
        angle = np.arcsin(np.clip(x / np.maximum(half, 1e-3), -1, 1)) - shot.turn
        around = angle * width
    else:
        around = x * (width / float(thing.halves.max()))
    inside = (y > thing.top) & (y < thing.bottom)
    return inside & PATTERNS[who.mark](around, y - middle, width, height)


def _shading(
    parts: list[Part],
    labels: np.ndarray,
    body: int,
    frame: Frame,
    session: Session,
    left: int,
    top: int,
) -> tuple[np.ndarray, np.ndarray]:
    """How bright every pixel is, and the highlights: each part is a cushion in the light."""
    middle = np.zeros((len(parts) + 2, 2), np.float32)
    reach = np.ones((len(parts) + 2, 2), np.float32)
    for label, part in enumerate(parts, start=1):
        low, high = part.points.min(axis=0), part.points.max(axis=0)
        middle[label] = frame.place((low + high) / 2)
        reach[label] = np.maximum((high - low) / 2, 0.1) * frame.radius
    middle[-1], reach[-1] = middle[body], reach[body]
    rows, columns = labels.shape
    pixel = np.arange(max(rows, columns), dtype=np.float32)
    across = (pixel[None, :columns] + left - middle[:, 0][labels]) / reach[:, 0][labels]
    down = (pixel[:rows, None] + top - middle[:, 1][labels]) / reach[:, 1][labels]
    side = -session.from_left
    facing = side * across - (1 - 0.6 * abs(side)) * down
    # Round things are darker towards both edges.
    bright = 1.0 + session.depth * (facing - 0.45 * across * across)
    off = (across - 0.4 * side) ** 2 + (down + 0.45) ** 2
    # Not an exponential: its last digits differ between processors, these are the same on all.
    fade = 1 / (1 + 3 * off)
    shine = np.float32(150 * session.gloss) * (fade * fade) * (fade * fade)
    edge = np.zeros(labels.shape, bool)
    edge[1:] |= labels[1:] != labels[:-1]
    edge[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    bright -= 0.22 * edge
    return np.maximum(bright, 0.2), shine


def _hand(parts: list[Part], shot: Shot) -> tuple[list[Part], list[Part]]:
    """An arm that comes from below, behind the thing, and fingers in front of its lower end."""
    points = np.concatenate([p.points for p in parts])
    low = float(points[:, 1].max())
    near = points[points[:, 1] > low - 0.5]
    x0, x1 = float(near[:, 0].min()), float(near[:, 0].max())
    x0, x1 = max(x0, -0.55), min(x1, 0.55)
    side = -1.0 if shot.flip else 1.0
    mid = (x0 + x1) / 2
    wrist = low + 0.55
    palm = smooth(
        (mid - 0.42, low - 0.25), (mid - 0.3, wrist), (mid - 0.3 + 0.1 * side, 3.2),
        (mid + 0.35 + 0.1 * side, 3.2), (mid + 0.34, wrist), (mid + 0.45, low - 0.25),
        closed=True,
    )  # fmt: skip
    edge, other = (x1, x0) if side > 0 else (x0, x1)
    fingers = [
        stroke(
            smooth((edge + 0.16 * side, y + 0.1), (edge - 0.1 * side, y), (edge - 0.34 * side, y)),
            width=0.17,
        )
        for y in (low - 0.34, low - 0.14, low + 0.06)
    ]
    thumb = smooth(
        (other - 0.1 * side, low + 0.2),
        (other - 0.02 * side, low - 0.1),
        (other + 0.2 * side, low - 0.3),
    )
    return [area(palm)], [*fingers, stroke(thumb, width=0.2)]


def _shadow(cover: np.ndarray, x: int, y: int, size: int) -> np.ndarray:
    """The soft shadow of what covers the ground, moved by (x, y) pixels."""
    mask = Image.fromarray((cover * 255).astype(np.uint8))
    soft = mask.filter(ImageFilter.BoxBlur(0.035 * size))
    cast = soft.transform(soft.size, Image.Transform.AFFINE, (1, 0, -x, 0, 1, -y))
    return np.asarray(cast, dtype=np.float32) / 255


@lru_cache(maxsize=32)
def _light(session: Session, size: int) -> np.ndarray:
    """The light that falls on every pixel, by colour."""
    pixel = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
    lean = 0.35 * session.from_left
    off = (pixel[None, :] + lean) ** 2 + (pixel[:, None] + 0.15) ** 2
    fall = 1 + 0.3 * session.spot - session.spot * np.minimum(off, 1.6) / 1.6
    light: np.ndarray = fall[..., None].astype(np.float32) * np.array(session.tint, np.float32)
    light.setflags(write=False)
    return light


def _shrunk(fine: np.ndarray) -> np.ndarray:
    """The mean of every square of fine pixels."""
    first = fine[::FINE, ::FINE] + fine[::FINE, 1::FINE]
    return (first + fine[1::FINE, ::FINE] + fine[1::FINE, 1::FINE]) * np.float32(0.25)
