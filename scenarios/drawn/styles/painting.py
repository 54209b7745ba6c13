"""Paintings: a lit scene painted over with brush strokes that follow its colours and edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ..canvas import cloud, label_map, random_frame, shrink, to_image
from ..parts import Colour, Drawing
from .colour import bend, luminance, mix, part_colours, random_colour
from .shading import random_light, shade

SUPERSAMPLING = 2


def painting(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing in oil or gouache."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.66, 0.94)
    colours = _palette(drawing, rng)
    labels = label_map(drawing, frame)
    motif = shade(drawing, colours, labels, frame, random_light(rng), rng)
    wash = _wash(side, colours, rng)
    return shrink(_varnish(_paint(motif, wash, labels, rng), rng), size)


def _palette(drawing: Drawing, rng: np.random.Generator) -> list[Colour]:
    """Colours pulled towards one tone, as if mixed from few tubes."""
    tone = random_colour(rng, (0.3, 0.8), (0.3, 0.9))
    pull, turn, saturation = rng.uniform(0.0, 0.3), rng.normal(0, 0.06), rng.uniform(0.7, 1.4)
    mixed = {
        role: mix(bend(colour, turn, saturation), tone, pull)
        for role, colour in drawing.colours.items()
    }
    return part_colours(drawing, mixed, rng.uniform(0.1, 0.2))


def _wash(side: int, colours: list[Colour], rng: np.random.Generator) -> np.ndarray:
    """A ground of two colours, light behind a dark motif and dark behind a light one."""
    motif = float(np.mean([luminance(colour) for colour in colours]))
    value = (0.1, 0.45) if motif > 0.5 else (0.65, 1.0)
    one, other = (
        np.array(random_colour(rng, (0.1, 0.65), value), dtype=np.float32) for _ in range(2)
    )
    share = np.clip(cloud(rng, side, 3) * 1.4 - 0.2, 0, 1)[..., None]
    return one * (1 - share) + other * share


@dataclass(frozen=True)
class Layer:
    """Strokes on the pixels `places`: how many, and their length and width as shares."""

    places: np.ndarray
    count: int
    length: float
    width: float


def _paint(
    motif: np.ndarray, wash: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> Image.Image:
    """Broad strokes on the ground, then the motif, finer strokes on it, and its edges last."""
    side = len(labels)
    brush = rng.uniform(0.8, 1.3)
    jitter = rng.uniform(6, 18)
    image = to_image(wash)
    pen = ImageDraw.Draw(image)
    ground = Layer(np.arange(side * side), 160, 0.17 * brush, 0.07 * brush)
    swirl = rng.uniform(0, np.pi) + 2.0 * cloud(rng, side, 3)
    _strokes(pen, ground, wash, swirl, np.ones_like(swirl), jitter, rng)

    mask = Image.fromarray((labels > 0).astype(np.uint8) * 255)
    image.paste(to_image(motif), mask=mask)
    scene = np.asarray(image, dtype=np.float32)
    along, contrast = _directions(image, swirl)
    room, edges = _room(labels), np.flatnonzero(contrast > 0.025)
    for layer in (
        Layer(np.flatnonzero(labels), 180, 0.1 * brush, 0.04 * brush),
        Layer(edges, min(300, 80 + len(edges) * 128**2 // (10 * side**2)), 0.06, 0.02),
    ):
        if len(layer.places) > 0:
            _strokes(pen, layer, scene, along, room, jitter, rng)
    return image


def _room(labels: np.ndarray) -> np.ndarray:
    """How large strokes may be, in (0, 1]: small where borders of parts are many.

    A stroke longer than the part it lies on would tear thin things apart.
    """
    side = len(labels)
    border = np.zeros_like(labels, dtype=np.uint8)
    border[1:][labels[1:] != labels[:-1]] = 255
    border[:, 1:][labels[:, 1:] != labels[:, :-1]] = 255
    dense = Image.fromarray(border).filter(ImageFilter.BoxBlur(side * 0.03))
    return np.clip(1.1 - np.asarray(dense, dtype=np.float32) / 65, 0.2, 1.0)


def _strokes(
    pen: ImageDraw.ImageDraw,
    layer: Layer,
    scene: np.ndarray,
    along: np.ndarray,
    room: np.ndarray,
    jitter: float,
    rng: np.random.Generator,
) -> None:
    """Slightly bent strokes `along` a direction, in the scene's colours, as large as `room`."""
    side = len(scene)
    y, x = np.divmod(rng.choice(layer.places, layer.count), side)
    free = room[y, x]
    reach = free * rng.uniform(0.5, 1.2, layer.count) * layer.length * side / 2
    widths = np.maximum(1, np.rint(free * layer.width * side)).astype(int)
    back = along[y, x] + rng.normal(0, 0.12, layer.count)
    ahead = back + rng.normal(0, 0.2, layer.count)
    paths = np.stack(
        [
            x - reach * np.cos(back),
            y - reach * np.sin(back),
            x,
            y,
            x + reach * np.cos(ahead),
            y + reach * np.sin(ahead),
        ],
        axis=1,
    )
    uneven = rng.normal(0, jitter, (layer.count, 1)) + rng.normal(0, 4, (layer.count, 3))
    paints = np.clip(scene[y, x] + uneven, 0, 255).astype(int)
    strokes = zip(paths.tolist(), paints.tolist(), widths.tolist(), strict=True)
    for path, paint, width in strokes:
        pen.line(path, fill=tuple(paint), width=width)


def _directions(image: Image.Image, swirl: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle of the brush at every pixel, and how strong an edge it follows.

    Along edges where there are any, along the slow `swirl` where there are none.
    """
    grey = image.convert("L").filter(ImageFilter.BoxBlur(image.width * 0.022))
    down, across = np.gradient(np.asarray(grey, dtype=np.float32) / 255)
    contrast = np.hypot(across, down)
    return np.where(contrast > 0.008, np.arctan2(across, -down), swirl), contrast


def _varnish(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Ridges of paint, the weave of the canvas, and a warm or cool tone over all."""
    pixels = np.asarray(image, dtype=np.float32)
    side = len(pixels)
    weave = cloud(rng, side, side // 2) - 0.5
    streaks = cloud(rng, side, side // 3, 8) - 0.5
    texture = 1 + rng.uniform(0.05, 0.2) * weave + rng.uniform(0.0, 0.2) * streaks
    tone = 1 + rng.normal(0, 0.07) * np.array((1.0, 0.2, -1.0), dtype=np.float32)
    return to_image(pixels * texture[..., None] * tone)
