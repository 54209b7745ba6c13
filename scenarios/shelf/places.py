"""Where the sessions were filmed: one wide picture of every place, of which a video shows a piece.

A place is drawn once from its name alone. Coordinates are shares of a picture's side, so a place is
`WIDE` units wide and `HIGH` units high. Things stand at about `GROUND`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ..drawn.canvas import cloud
from ..drawn.parts import Colour
from ..drawn.styles.colour import from_hsv
from .seeds import generator

WIDE, HIGH, GROUND = 4.0, 1.25, 0.92


class Canvas:
    """A place while it is painted: twice as fine as it is shown."""

    def __init__(self, size: int, rng: np.random.Generator, colour: Colour) -> None:
        self.unit = 2 * size
        self.rng = rng
        self.image = Image.new("RGB", (int(WIDE * self.unit), int(HIGH * self.unit)), colour)
        self.pen = ImageDraw.Draw(self.image)

    def box(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        """A rectangle."""
        self.pen.rectangle([v * self.unit for v in (x0, y0, x1, y1)], fill=colour)

    def disc(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """An ellipse."""
        self.pen.ellipse([v * self.unit for v in (x - rx, y - ry, x + rx, y + ry)], fill=colour)

    def path(self, *points: tuple[float, float], width: float, colour: Colour) -> None:
        """A line."""
        flat = [v * self.unit for point in points for v in point]
        self.pen.line(flat, fill=colour, width=max(1, round(width * self.unit)))

    def grain(self, y0: float, y1: float, rows: int, columns: int, contrast: float) -> None:
        """Make what lies between two heights lighter and darker, in bumps."""
        top, bottom = int(y0 * self.unit), int(y1 * self.unit)
        pixels = np.asarray(self.image).astype(np.float32)
        texture = cloud(self.rng, 512, rows, columns)
        bumps = Image.fromarray(texture).resize((pixels.shape[1], bottom - top))
        pixels[top:bottom] *= (1 + contrast * (np.asarray(bumps) - 0.5))[..., None]
        self.image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        self.pen = ImageDraw.Draw(self.image)

    def blur(self, share: float) -> None:
        """Everything painted so far is out of focus."""
        self.image = self.image.filter(ImageFilter.GaussianBlur(share * self.unit))
        self.pen = ImageDraw.Draw(self.image)


def _shelf(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (196, 176, 146))
    x = 0.0
    while x < WIDE:
        thick, tall = rng.uniform(0.06, 0.14), rng.uniform(0.35, 0.7)
        colour = from_hsv(rng.random(), rng.uniform(0.15, 0.45), rng.uniform(0.35, 0.7))
        if rng.random() < 0.85:
            c.box(x, GROUND - 0.05 - tall, x + thick * 0.93, GROUND, colour)
            c.box(x, GROUND - tall + 0.06, x + thick * 0.93, GROUND - tall + 0.09, (200, 190, 160))
        x += thick
    c.blur(0.006)
    c.box(0, GROUND - 0.06, WIDE, HIGH, (164, 112, 62))
    c.grain(GROUND - 0.06, HIGH, 30, 14, 0.5)
    c.box(0, HIGH - 0.1, WIDE, HIGH, (112, 72, 38))
    return c


def _desk(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (112, 132, 152))
    for x in np.arange(0.1, WIDE, 1.0) + rng.uniform(0, 0.3, 4):
        c.box(x, 0.1, x + 0.55, 0.55, (44, 48, 56))
        c.box(x + 0.02, 0.12, x + 0.53, 0.53, (92, 130, 168))
        c.box(x + 0.22, 0.55, x + 0.33, 0.7, (60, 62, 68))
    c.box(0, 0.64, WIDE, HIGH, (176, 182, 188))
    for x in rng.uniform(0, WIDE, 9):
        y, lean = rng.uniform(0.7, 1.1), rng.uniform(-0.06, 0.06)
        c.box(x, y, x + 0.34, y + 0.2, (250, 250, 248))
        for k in range(4):
            line = y + 0.04 + 0.04 * k
            c.path((x + 0.03, line), (x + 0.3, line), width=0.008, colour=(150, 155, 165))
        pen = from_hsv(rng.random(), 0.7, 0.7)
        c.path((x + 0.4, y), (x + 0.55, y + lean), width=0.025, colour=pen)
    c.blur(0.005)
    return c


def _grass(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (82, 132, 44))
    for _ in range(1800):
        x, y = rng.uniform(0, WIDE), rng.uniform(-0.1, HIGH + 0.1)
        colour = from_hsv(rng.uniform(0.2, 0.33), rng.uniform(0.5, 0.8), rng.uniform(0.3, 0.75))
        tip = (x + rng.uniform(-0.04, 0.04), y - rng.uniform(0.05, 0.14))
        c.path((x, y), tip, width=0.014, colour=colour)
    for x, y in rng.uniform(0, 1, (26, 2)) * (WIDE, HIGH):
        c.disc(x, y, 0.025, 0.02, (240, 240, 235))
        c.disc(x, y, 0.009, 0.008, (240, 200, 40))
    return c


def _night(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (40, 44, 66))
    for x, y in rng.uniform(0, 1, (46, 2)) * (WIDE, 0.75):
        reach = rng.uniform(0.015, 0.05)
        c.disc(
            x,
            y,
            reach,
            reach,
            from_hsv(rng.choice([0.1, 0.13, 0.6, 0.0]), 0.6, rng.uniform(0.4, 0.9)),
        )
    c.blur(0.012)
    c.box(0, GROUND - 0.12, WIDE, HIGH, (78, 56, 44))
    c.grain(GROUND - 0.12, HIGH, 20, 10, 0.5)
    return c


def _room(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (198, 176, 168))
    for x in rng.uniform(0, WIDE, 22):
        colour = from_hsv(rng.uniform(-0.05, 0.15), rng.uniform(0.2, 0.6), rng.uniform(0.35, 0.85))
        y, w, h = rng.uniform(0.1, 1.2), rng.uniform(0.08, 0.3), rng.uniform(0.1, 0.35)
        if rng.random() < 0.4:
            c.disc(x, y, w, h, colour)
        else:
            c.box(x - w, y - h, x + w, y + h, colour)
    c.blur(0.05)
    return c


def _window(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (176, 206, 246))
    c.box(0, 0.5, WIDE, 0.85, (196, 216, 214))
    for x in rng.uniform(0, WIDE, 16):
        c.disc(x, rng.uniform(0.55, 0.8), rng.uniform(0.1, 0.25), 0.12, (138, 168, 132))
    for x, y in rng.uniform(0, 1, (9, 2)) * (WIDE, 0.4):
        c.disc(x, y, rng.uniform(0.1, 0.3), 0.05, (250, 250, 255))
    c.blur(0.02)
    for x in np.arange(0.1, WIDE, 0.8):
        c.box(x, 0, x + 0.07, GROUND, (238, 238, 240))
    c.box(0, 0.4, WIDE, 0.45, (238, 238, 240))
    c.box(0, GROUND - 0.08, WIDE, HIGH, (228, 226, 224))
    c.box(0, GROUND - 0.08, WIDE, GROUND - 0.05, (170, 172, 178))
    return c


def _kitchen(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (150, 160, 160))
    pitch = 0.21
    for i in range(int(WIDE / pitch) + 1):
        for j in range(6):
            light = rng.uniform(0.82, 0.95)
            dark = rng.random() < 0.2
            tile = from_hsv(0.56, 0.55, 0.62) if dark else from_hsv(0.5, 0.06, light)
            c.box(i * pitch, j * pitch - 0.1, (i + 0.93) * pitch, (j + 0.93) * pitch - 0.1, tile)
    c.box(0, GROUND - 0.14, WIDE, HIGH, (74, 78, 76))
    c.grain(GROUND - 0.14, HIGH, 40, 160, 0.7)
    return c


def _street(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (120, 104, 100))
    for j in range(9):
        for i in range(-1, 17):
            x = (i + 0.5 * (j % 2)) * 0.26
            brick = from_hsv(rng.uniform(0.0, 0.05), rng.uniform(0.4, 0.6), rng.uniform(0.4, 0.62))
            c.box(x, j * 0.1, x + 0.245, j * 0.1 + 0.085, brick)
    c.box(0, 0.8, WIDE, HIGH, (132, 132, 134))
    c.grain(0.8, HIGH, 50, 200, 0.45)
    for x in np.arange(0.2, WIDE, 0.62):
        c.path((x, 0.8), (x - 0.15, HIGH), width=0.014, colour=(84, 84, 88))
    c.path((0, 0.8), (WIDE, 0.8), width=0.02, colour=(70, 70, 74))
    return c


def _beach(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (226, 198, 146))
    c.grain(0, HIGH, 14, 30, 0.3)
    c.grain(0, HIGH, 90, 280, 0.25)
    for x, y in rng.uniform(0, 1, (30, 2)) * (WIDE, HIGH):
        shade = from_hsv(rng.uniform(0.0, 0.1), rng.uniform(0.05, 0.3), rng.uniform(0.55, 0.98))
        c.disc(x, y, rng.uniform(0.015, 0.05), rng.uniform(0.012, 0.03), shade)
    return c


def _carpet(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (134, 34, 48))
    for i in range(14):
        for j in range(5):
            x, y = (i + 0.5 * (j % 2)) * 0.3, j * 0.3
            for reach, colour in (
                (0.12, (36, 44, 92)),
                (0.08, (204, 160, 84)),
                (0.04, (134, 34, 48)),
            ):
                points = [(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach)]
                c.pen.polygon([v * c.unit for point in points for v in point], fill=colour)
    c.grain(0, HIGH, 80, 250, 0.35)
    return c


def _garage(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (150, 146, 140))
    c.grain(0, GROUND, 8, 22, 0.35)
    for x in rng.uniform(0, WIDE, 12):
        y = rng.uniform(0.1, 0.5)
        c.path((x, y), (x + 0.02, y + 0.35), width=0.03, colour=(70, 70, 76))
        c.box(x - 0.06, y - 0.03, x + 0.08, y + 0.03, (90, 92, 100))
    c.box(0, GROUND - 0.16, WIDE, HIGH, (104, 100, 96))
    for x in rng.uniform(0, WIDE, 8):
        c.disc(x, rng.uniform(0.9, 1.2), rng.uniform(0.08, 0.2), 0.04, (70, 66, 62))
    c.blur(0.004)
    return c


def _curtain(size: int, rng: np.random.Generator) -> Canvas:
    c = Canvas(size, rng, (90, 150, 150))
    for x in np.arange(0, WIDE, 0.02):
        fold = 0.5 + 0.5 * np.sin(x * 26 + 2 * np.sin(x * 5))
        colour = from_hsv(0.49, 0.45, 0.4 + 0.45 * fold)
        c.box(x, 0, x + 0.02, HIGH, colour)
    c.box(0, GROUND - 0.1, WIDE, HIGH, (232, 210, 214))
    for x in np.arange(0, WIDE, 0.16):
        c.box(x, GROUND - 0.1, x + 0.08, HIGH, (214, 150, 168))
    return c


PLACES: dict[str, Callable[[int, np.random.Generator], Canvas]] = {
    "shelf": _shelf,
    "desk": _desk,
    "grass": _grass,
    "night": _night,
    "hand": _room,
    "window": _window,
    "kitchen": _kitchen,
    "street": _street,
    "beach": _beach,
    "carpet": _carpet,
    "garage": _garage,
    "curtain": _curtain,
}


@lru_cache(maxsize=24)
def place(name: str, size: int) -> np.ndarray:
    """The whole place, (HIGH x WIDE) sides of `size` pixels, as floats in [0, 255]."""
    canvas = PLACES[name](size, generator("place", name))
    pixels = np.asarray(canvas.image.reduce(2), dtype=np.float32)
    pixels.setflags(write=False)
    return pixels
