"""Woodcuts: lines and areas left standing in a carved block, in black on cream paper.

There are no greys: darker places have wider lines. What is dark is set off by carved white lines,
what is light by black ones. Some prints have a second, flat colour below the black.

Angles are pairs of shares instead of sines, and reach no further than square roots, so that a
picture is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ..canvas import Frame, cloud, fill_part, label_map, random_frame, shrink, to_image
from ..parts import Colour, Drawing
from ..shapes import pick
from .colour import from_hsv, luminance
from .shading import within_parts

SUPERSAMPLING = 2
DARK = 0.62
"""From this tone on, a part is a black area with white lines in it."""


def woodcut(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing carved into a block of wood and printed."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.74, 0.92)
    labels = label_map(drawing, frame)
    tones = _tones(drawing, rng)
    ink = np.where(labels > 0, _hatching(drawing, labels, tones, frame, rng), _ground(labels, rng))
    ink = _outlines(ink, drawing, tones, frame, rng)
    return _print(ink, labels, drawing, size, rng)


def _tones(drawing: Drawing, rng: np.random.Generator) -> np.ndarray:
    """How dark every part is carved, in [0, 1]; first, the ground that lies behind all of them."""
    weight = rng.uniform(0.65, 1.05)
    tones = [0.0]
    for index, part in enumerate(drawing.parts):
        # Neighbours of one colour differ a little, or they would melt into one area.
        step = (0.0, 0.14, -0.14)[index % 3]
        tones.append(weight * (1 - luminance(drawing.colours[part.role])) + step)
    return np.clip(np.array(tones, dtype=np.float32), 0.05, 0.95)


def _hatching(
    drawing: Drawing,
    labels: np.ndarray,
    tones: np.ndarray,
    frame: Frame,
    rng: np.random.Generator,
) -> np.ndarray:
    """Ink of bent lines along every part, wider away from the light."""
    right, down = within_parts(drawing, labels, frame)
    x, y = _direction(rng)
    tone = tones[labels] - np.float32(rng.uniform(0.3, 0.55)) * (right * x - down * y)

    # Lines run in one of two directions, and bend as if the parts were round.
    count = len(drawing.parts) + 1
    ways = np.array([_direction(rng), _direction(rng)])[rng.integers(0, 2, count)]
    ahead, aside = ways.astype(np.float32).T[:, labels]
    along = ahead * down - aside * right
    bend = rng.uniform(-0.8, 0.8, count).astype(np.float32)[labels]
    pixel = np.arange(frame.side, dtype=np.float32)
    across = ahead * pixel[None, :] + aside * pixel[:, None]
    waves = across / np.float32(rng.uniform(0.045, 0.065) * frame.side) + bend * along * along
    return _lines(waves, tone, rng)


def _direction(rng: np.random.Generator) -> tuple[float, float]:
    """A vector of length 1 that points downwards, to the left or to the right."""
    x, y = rng.uniform(0.15, 1, 2)
    length = math.sqrt(x * x + y * y)
    return pick(rng, -1, 1) * x / length, y / length


def _lines(waves: np.ndarray, tone: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A line for every step of 1 in `waves`, as wide as `tone` is dark: ink in [0, 1]."""
    side = len(waves)
    waves = waves + np.float32(0.9) * cloud(rng, side, 5)
    tone = tone + np.float32(0.3) * (cloud(rng, side, 16) - np.float32(0.5))
    tone = np.where(tone < 0.2, 0, np.where(tone > 0.9, 1.5, tone)).astype(np.float32)
    distance = np.abs(waves - np.floor(waves) - np.float32(0.5)) * 2
    return np.clip((tone - distance) * 3 + np.float32(0.5), 0, 1) * (tone > 0)


def _outlines(
    ink: np.ndarray,
    drawing: Drawing,
    tones: np.ndarray,
    frame: Frame,
    rng: np.random.Generator,
) -> np.ndarray:
    """The ink with an edge around every part: black around light ones, white around dark ones.

    Black edges are wider on one side, as where a knife leans.
    """
    side = frame.side
    width = rng.uniform(0.012, 0.019) * side
    lean = np.array(_direction(rng)) * width * rng.uniform(0.3, 0.7)
    leaning = Frame(side, frame.centre + lean, frame.radius)
    kept, black, white = 0, 1, 2
    image = Image.new("L", (side, side), kept)
    pen = ImageDraw.Draw(image)
    for part, tone in zip(drawing.parts, tones[1:].tolist(), strict=True):
        thin = not part.closed and part.width * frame.radius < 4 * width
        if thin:
            fill_part(pen, frame, part, white, grow=1.5 * width)
            fill_part(pen, frame, part, black, grow=0.4 * width)
        elif tone >= DARK:
            fill_part(pen, frame, part, white, grow=1.5 * width)
            fill_part(pen, frame, part, black, grow=0.5 * width)
            fill_part(pen, frame, part, kept)
        else:
            fill_part(pen, leaning, part, black, grow=width)
            fill_part(pen, frame, part, kept)
    edges = np.asarray(image)
    return np.where(edges == kept, ink, np.where(edges == black, 1, 0)).astype(np.float32)


# Grounds: ink in [0, 1] from the coordinates of pixels, which go from -1 to 1


def _bare(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cleared wood, where the knife left a few ridges."""
    slope, lines = rng.uniform(-0.5, 0.5), rng.uniform(7, 10)
    left = np.float32(1.1) * cloud(rng, len(y), 7) - np.float32(rng.uniform(0.65, 0.85))
    return _lines((y + slope * x) * lines, left, rng)


def _sky(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lines that lie, wider towards the top or the bottom."""
    slope, fall = rng.uniform(-0.15, 0.15), rng.uniform(0.15, 0.4) * pick(rng, -1, 1)
    return _lines((y + slope * x) * rng.uniform(8, 12), rng.uniform(0.35, 0.5) + fall * y, rng)


def _floor(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A dark floor of boards below a bare wall."""
    edge = rng.uniform(0.25, 0.7)
    floor = _lines((y + 0.1 * x) * rng.uniform(7, 9), np.full_like(x + y, 0.7), rng)
    return np.where(y > edge, floor, _bare(x, y, rng))


def _rays(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """White rays out of a black ground."""
    x, y = x - rng.uniform(-0.3, 0.3), y - rng.uniform(-0.3, 0.3)
    turn = y / (np.abs(x) + np.abs(y) + np.float32(0.01))  # grows like an angle
    return _lines(turn * rng.uniform(10, 14), np.full_like(turn, rng.uniform(0.7, 0.85)), rng)


def _rings(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """White rings in a black ground."""
    far = np.sqrt((x - rng.uniform(-0.3, 0.3)) ** 2 + (y - rng.uniform(-0.3, 0.3)) ** 2)
    return _lines(far * rng.uniform(8, 12), np.full_like(far, rng.uniform(0.7, 0.85)), rng)


GROUNDS: tuple[Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray], ...] = (
    _bare,
    _bare,
    _bare,
    _sky,
    _floor,
    _rays,
    _rings,
)


def _ground(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ink around the object, which has a cleared rim, and sometimes the border of the block."""
    side = len(labels)
    along = np.linspace(-1, 1, side, dtype=np.float32)
    x, y = along[None, :], along[:, None]
    ink = pick(rng, *GROUNDS)(x, y, rng)
    if rng.random() < 0.6:
        rough = np.float32(0.03) * cloud(rng, side, 20)
        edge = 1 - np.maximum(np.abs(x), np.abs(y)) + rough
        margin, border = rng.uniform(0.02, 0.07), rng.uniform(0.03, 0.05)
        ink = np.where(edge < margin + border, 1, ink) * (edge > margin)
    mask = Image.fromarray((labels > 0).astype(np.uint8) * 255)
    near = np.asarray(mask.filter(ImageFilter.BoxBlur(rng.uniform(0.03, 0.05) * side)))
    return ink * (near < 16)


def _print(
    ink: np.ndarray, labels: np.ndarray, drawing: Drawing, size: int, rng: np.random.Generator
) -> np.ndarray:
    """The ink on paper, over a second colour on some prints, worn along the grain of the wood."""
    paper = from_hsv(rng.uniform(0.09, 0.14), rng.uniform(0.08, 0.26), rng.uniform(0.88, 0.98))
    black = from_hsv(rng.random(), rng.uniform(0.0, 0.5), rng.uniform(0.04, 0.16))
    sheet = np.empty((size, size, 3), np.float32)
    sheet[:] = paper
    if rng.random() < 0.4:
        hue = pick(rng, 0.0, 0.04, 0.1, 0.35, 0.55, 0.6)
        second = from_hsv(hue, rng.uniform(0.45, 0.8), rng.uniform(0.6, 0.9))
        sheet = _inked(sheet, second, _second_block(labels, drawing, rng))
    sheet -= np.float32(18) * cloud(rng, size, 4)[..., None]
    grain = cloud(rng, len(ink), 3, len(ink) // 3)
    worn = np.clip((grain - np.float32(rng.uniform(0.75, 0.95))) * 4, 0, np.float32(0.7))
    return np.array(to_image(_inked(sheet, black, ink * (1 - worn))))


def _inked(sheet: np.ndarray, colour: Colour, ink: np.ndarray) -> np.ndarray:
    """The sheet after a block was pressed on it that carries `ink` at a larger size."""
    cover = shrink(to_image(255 * ink), len(sheet)).astype(np.float32) / 255
    return sheet + cover * (np.array(colour, dtype=np.float32) - sheet)


def _second_block(labels: np.ndarray, drawing: Drawing, rng: np.random.Generator) -> np.ndarray:
    """Where the second colour is: on the ground or the parts of one role, but a little aside."""
    roles = ["", *(part.role for part in drawing.parts)]
    role = pick(rng, "", "main", "main", "second")
    inked = np.array([each == role for each in roles])[labels]
    aside = (rng.uniform(-0.02, 0.02, 2) * len(labels)).astype(int).tolist()
    return np.roll(inked, aside, axis=(0, 1))
