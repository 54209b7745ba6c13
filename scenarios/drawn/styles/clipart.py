"""Clip art: flat, clean, saturated, with or without outlines, on white or a plain colour."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from ..canvas import Frame, fill_part, label_map, random_frame, shrink
from ..parts import Colour, Drawing, Role
from .colour import (
    BLACK,
    WHITE,
    bend,
    luminance,
    mix,
    part_colours,
    random_colour,
)

SUPERSAMPLING = 3


def clipart(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as a piece of clip art."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.6, 0.92)
    backdrop = WHITE if rng.random() < 0.55 else random_colour(rng, (0.05, 0.3), (0.88, 1.0))
    image = Image.new("RGB", (side, side), backdrop)
    pen = ImageDraw.Draw(image)
    ground = backdrop
    if rng.random() < 0.25:
        ground = _blob(pen, frame, rng)

    if rng.random() < 0.18:
        colours, line_colours, line = _stencil(drawing, ground, rng)
    else:
        colours, line_colours, line = _coloured(drawing, rng)
    if rng.random() < 0.2:
        _sticker_border(pen, drawing, frame, ground)
    for part, colour, line_colour in zip(drawing.parts, colours, line_colours, strict=True):
        if line > 0:
            fill_part(pen, frame, part, line_colour, grow=line * side)
        fill_part(pen, frame, part, colour)
    if rng.random() < 0.3:
        image = _two_tone(image, drawing, frame, rng)
    return shrink(image, size)


def _coloured(
    drawing: Drawing, rng: np.random.Generator
) -> tuple[list[Colour], list[Colour], float]:
    """Fills, outline colours and outline share of an ordinary, coloured piece."""
    colours = part_colours(drawing, palette(drawing, rng), rng.uniform(0.06, 0.16))
    kind = rng.choice(4, p=(0.4, 0.15, 0.2, 0.25))
    if kind == 3:  # no outline: a hair of a darker shade keeps parts apart
        return colours, [mix(colour, BLACK, 0.4) for colour in colours], 0.005
    line = rng.uniform(0.006, 0.022)
    if kind == 0:
        ink = random_colour(rng, (0.0, 0.5), (0.02, 0.2))
        return colours, [ink] * len(colours), line
    if kind == 1:
        ink = random_colour(rng, (0.6, 1.0), (0.3, 0.6))
        return colours, [ink] * len(colours), line
    return colours, [mix(colour, BLACK, 0.55) for colour in colours], line


def _stencil(
    drawing: Drawing, ground: Colour, rng: np.random.Generator
) -> tuple[list[Colour], list[Colour], float]:
    """A silhouette in one ink, its parts separated by lines in the colour of the ground."""
    ink = random_colour(rng, (0.0, 1.0), (0.05, 0.45))
    paper = mix(ground, WHITE, 0.3)
    colours = [paper if part.role == "light" else ink for part in drawing.parts]
    lines = [ink if part.role == "light" else paper for part in drawing.parts]
    return colours, lines, rng.uniform(0.008, 0.014)


def palette(drawing: Drawing, rng: np.random.Generator) -> dict[Role, Colour]:
    """The drawing's colours made flat and saturated, pale, or replaced by loud ones."""
    kind = rng.choice(3, p=(0.5, 0.25, 0.25))
    if kind == 0:
        saturation, value = rng.uniform(1.1, 1.7), rng.uniform(0.95, 1.2)
        return {
            role: bend(colour, saturation=saturation, value=value)
            for role, colour in drawing.colours.items()
        }
    if kind == 1:
        pale = rng.uniform(0.35, 0.55)
        return {role: mix(colour, WHITE, pale) for role, colour in drawing.colours.items()}
    turn = rng.random()
    colours = {role: bend(colour, turn, 1.4, 1.1) for role, colour in drawing.colours.items()}
    colours["main"] = random_colour(rng, (0.6, 1.0), (0.65, 1.0))
    return colours


def _blob(pen: ImageDraw.ImageDraw, frame: Frame, rng: np.random.Generator) -> Colour:
    """A plain rounded patch behind the object; returns its colour."""
    colour = random_colour(rng, (0.15, 0.6), (0.75, 1.0))
    x, y = frame.centre + rng.uniform(-0.1, 0.1, 2) * frame.radius
    width, height = rng.uniform(0.8, 1.15, 2) * frame.radius
    box = (x - width, y - height, x + width, y + height)
    if rng.random() < 0.6:
        pen.ellipse(box, fill=colour)
    else:
        pen.rounded_rectangle(box, radius=rng.uniform(0.1, 0.5) * frame.radius, fill=colour)
    return colour


def _sticker_border(
    pen: ImageDraw.ImageDraw, drawing: Drawing, frame: Frame, ground: Colour
) -> None:
    """A white border around the whole object, with a rim where the ground is white too."""
    rim = mix(ground, BLACK, 0.35 if luminance(ground) > 0.9 else 0.15)
    for share, colour in ((0.042, rim), (0.032, WHITE)):
        for part in drawing.parts:
            fill_part(pen, frame, part, colour, grow=share * frame.side)


def _two_tone(
    image: Image.Image, drawing: Drawing, frame: Frame, rng: np.random.Generator
) -> Image.Image:
    """One flat shadow over the half of every part that lies away from the light."""
    angle = rng.uniform(0.1, np.pi - 0.1)
    x, y = np.cos(angle), np.sin(angle)
    middles = [0.0]
    for part in drawing.parts:
        low, high = part.points.min(axis=0), part.points.max(axis=0)
        middles.append(float(frame.place((low + high) / 2) @ (x, y)))
    labels = label_map(drawing, frame)
    pixel = np.arange(frame.side, dtype=np.float32)
    behind = (pixel * x)[None, :] + (pixel * y)[:, None] > np.array(middles, np.float32)[labels]
    mask = Image.fromarray(((labels > 0) & behind).astype(np.uint8) * 255)
    strength = rng.uniform(0.7, 0.86)
    image.paste(image.point(lambda level: level * strength), mask=mask)
    return image
