"""Grounds for the real-like pictures, each a (side, side, 3) array of floats in [0, 255]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ..canvas import cloud
from ..parts import Colour
from .colour import from_hsv, random_colour


def scenery(side: int, rng: np.random.Generator) -> np.ndarray:
    """Any of the grounds, sometimes with blurred clutter on it."""
    ground = GROUNDS[rng.integers(len(GROUNDS))](side, rng)
    if rng.random() < 0.4:
        ground = _clutter(ground, rng)
    return ground


def _colour(colour: Colour) -> np.ndarray:
    return np.array(colour, dtype=np.float32)


def _gradient(top: Colour, bottom: Colour, side: int) -> np.ndarray:
    """One colour above fading into another below."""
    share = np.linspace(0, 1, side, dtype=np.float32)[:, None, None]
    column = _colour(top) * (1 - share) + _colour(bottom) * share
    return np.repeat(column, side, axis=1)


def _textured(colour: Colour, texture: np.ndarray, contrast: float) -> np.ndarray:
    """A colour made lighter and darker by a texture of about [0, 1]."""
    return _colour(colour) * (1 + contrast * (texture - 0.5))[..., None]


def _wall_and_table(side: int, rng: np.random.Generator) -> np.ndarray:
    wall = random_colour(rng, (0.05, 0.35), (0.5, 0.95))
    table = random_colour(rng, (0.1, 0.5), (0.25, 0.75))
    picture = _textured(wall, cloud(rng, side, 6), rng.uniform(0.1, 0.4))
    edge = int(rng.uniform(0.45, 0.8) * side)
    grain = cloud(rng, side, 40, 5)
    picture[edge:] = _textured(table, grain, rng.uniform(0.1, 0.4))[edge:]
    return picture


def _meadow(side: int, rng: np.random.Generator) -> np.ndarray:
    zenith = from_hsv(rng.uniform(0.52, 0.62), rng.uniform(0.2, 0.7), rng.uniform(0.7, 1.0))
    picture = _gradient(zenith, from_hsv(0.57, 0.1, rng.uniform(0.85, 1.0)), side)
    picture += 50 * np.maximum(cloud(rng, side, 4, 3) - 0.45, 0)[..., None]
    grass = from_hsv(rng.uniform(0.12, 0.36), rng.uniform(0.3, 0.8), rng.uniform(0.3, 0.65))
    edge = int(rng.uniform(0.4, 0.8) * side)
    blades = cloud(rng, side, 16, 48)
    picture[edge:] = _textured(grass, blades, rng.uniform(0.4, 0.9))[edge:]
    return picture


def _wood(side: int, rng: np.random.Generator) -> np.ndarray:
    colour = from_hsv(rng.uniform(0.04, 0.12), rng.uniform(0.3, 0.7), rng.uniform(0.35, 0.8))
    grain = 0.6 * cloud(rng, side, 40, 3) + 0.4 * cloud(rng, side, 12, 2)
    planks = int(rng.integers(2, 6))
    place = np.arange(side) * planks // side
    tone = rng.uniform(0.85, 1.1, planks).astype(np.float32)[place]
    tone[1:][np.diff(place) > 0] *= 0.6
    picture = _textured(colour, grain, rng.uniform(0.4, 0.9)) * tone[:, None, None]
    return picture if rng.random() < 0.5 else np.swapaxes(picture, 0, 1)


def _bokeh(side: int, rng: np.random.Generator) -> np.ndarray:
    dark = random_colour(rng, (0.2, 0.7), (0.1, 0.5))
    image = Image.new("RGB", (side // 2, side // 2), dark)
    pen = ImageDraw.Draw(image)
    for _ in range(rng.integers(6, 18)):
        x, y = rng.uniform(0, side / 2, 2)
        reach = rng.uniform(0.03, 0.1) * side
        colour = random_colour(rng, (0.1, 0.7), (0.4, 1.0))
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)
    return _out_of_focus(image, side, rng.uniform(0.015, 0.04))


def _studio(side: int, rng: np.random.Generator) -> np.ndarray:
    bright, dim = sorted(rng.uniform(0.3, 1.0, 2), reverse=True)
    hue, saturation = rng.random(), rng.uniform(0.0, 0.3)
    top, bottom = from_hsv(hue, saturation, dim), from_hsv(hue, saturation, bright)
    return _gradient(top, bottom, side)


def _fabric(side: int, rng: np.random.Generator) -> np.ndarray:
    colour = random_colour(rng, (0.1, 0.6), (0.3, 0.9))
    pitch = rng.uniform(0.04, 0.16) * side
    pixel = np.arange(side, dtype=np.float32) * (2 * np.pi / pitch)
    weave = 0.5 + 0.25 * (np.sin(pixel)[:, None] + rng.integers(0, 2) * np.sin(pixel)[None, :])
    folds = cloud(rng, side, 3, 4)
    return _textured(colour, weave, rng.uniform(0.1, 0.4)) * (0.75 + 0.5 * folds)[..., None]


def _foliage(side: int, rng: np.random.Generator) -> np.ndarray:
    one = random_colour(rng, (0.2, 0.6), (0.2, 0.6))
    other = random_colour(rng, (0.1, 0.5), (0.5, 0.9))
    share = cloud(rng, side, int(rng.integers(4, 12)))[..., None]
    return _colour(one) * (1 - share) + _colour(other) * share


GROUNDS: tuple[Callable[[int, np.random.Generator], np.ndarray], ...] = (
    _wall_and_table,
    _wall_and_table,
    _meadow,
    _wood,
    _bokeh,
    _studio,
    _fabric,
    _foliage,
)


def _out_of_focus(image: Image.Image, side: int, radius: float) -> np.ndarray:
    blurred = image.filter(ImageFilter.BoxBlur(radius * image.width))
    large = blurred.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(large, dtype=np.float32)


def _clutter(ground: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A few plain things behind the object, out of focus."""
    side = len(ground)
    half = side // 2
    image = Image.fromarray(np.clip(ground[::2, ::2], 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.integers(1, 5)):
        x, y = rng.uniform(0, half, 2)
        width, height = rng.uniform(0.05, 0.22, 2) * half
        colour = random_colour(rng, (0.1, 0.6), (0.2, 0.9))
        box = (x - width, y - height, x + width, y + height)
        (pen.ellipse if rng.random() < 0.5 else pen.rectangle)(box, fill=colour)
    return _out_of_focus(image, side, rng.uniform(0.02, 0.06))
