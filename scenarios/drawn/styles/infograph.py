"""Infographics: the object as an icon among charts, stubs of text, arrows and panels."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from ..canvas import Frame, fill_part, random_frame, shrink
from ..parts import Colour, Drawing
from .clipart import palette
from .clutter import ITEMS, Theme
from .colour import BLACK, WHITE, luminance, mix, part_colours, random_colour

SUPERSAMPLING = 3


def infograph(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as the icon of an infographic."""
    side = SUPERSAMPLING * size
    theme = _theme(rng)
    image = Image.new("RGB", (side, side), theme.ground)
    pen = ImageDraw.Draw(image)
    _panels(pen, side, theme, rng)
    cell = side / 4
    cells = rng.permutation(16)[: rng.integers(7, 13)]
    for index in cells.tolist():
        corner = np.array((index % 4, index // 4)) * cell
        item = ITEMS[rng.integers(len(ITEMS))]
        item(pen, corner + 0.1 * cell, 0.8 * cell, theme, rng)

    frame = random_frame(rng, side, 0.62, 0.85)
    _icon(pen, drawing, frame, theme, rng)
    for _ in range(rng.integers(0, 3)):
        outer = rng.integers(0, 2, 2) * (0.84 * side)
        item = ITEMS[rng.integers(len(ITEMS))]
        item(pen, outer, 0.16 * side, theme, rng)
    return shrink(image, size)


def _theme(rng: np.random.Generator) -> Theme:
    """A light or dark ground and a few accents that stand out from it."""
    if rng.random() < 0.75:
        ground = random_colour(rng, (0.0, 0.2), (0.88, 1.0))
        ink = random_colour(rng, (0.0, 0.6), (0.15, 0.4))
    else:
        ground = random_colour(rng, (0.3, 0.8), (0.15, 0.4))
        ink = random_colour(rng, (0.0, 0.1), (0.85, 1.0))
    accents = tuple(random_colour(rng, (0.5, 0.95), (0.55, 0.95)) for _ in range(3))
    return Theme(ground, ink, accents)


def _panels(pen: ImageDraw.ImageDraw, side: int, theme: Theme, rng: np.random.Generator) -> None:
    """Large quiet structure: a header, a column, or a grid."""
    tint = mix(theme.ground, theme.accent(rng), rng.uniform(0.15, 0.4))
    kind = rng.integers(5)
    if kind == 0:
        pen.rectangle((0, 0, side, rng.uniform(0.1, 0.3) * side), fill=tint)
    elif kind == 1:
        edge = rng.uniform(0.25, 0.5) * side
        pen.rectangle((0, 0, edge, side), fill=tint)
    elif kind == 2:
        for at in np.arange(0, side, side / rng.integers(5, 9)).tolist():
            pen.line((at, 0, at, side), fill=tint, width=max(1, side // 100))
            pen.line((0, at, side, at), fill=tint, width=max(1, side // 100))
    elif kind == 3:
        pen.rectangle((0, side / 2, side, side), fill=tint)


def _icon(
    pen: ImageDraw.ImageDraw,
    drawing: Drawing,
    frame: Frame,
    theme: Theme,
    rng: np.random.Generator,
) -> None:
    """The object in colours or in one, on a disc, a card, or straight on the clutter."""
    ground, backed = theme.ground, rng.random() < 0.6
    if backed:
        ground = _backing(pen, frame, theme, rng)
    kind = rng.choice(3, p=(0.5, 0.3, 0.2))
    if kind == 0:
        colours = part_colours(drawing, palette(drawing, rng), rng.uniform(0.05, 0.15))
        ink = mix(random_colour(rng, (0.0, 0.6), (0.1, 0.3)), BLACK, 0.2)
        lines = [ink] * len(colours)
    else:
        ink = _contrasting(ground, rng) if kind == 1 else theme.ink
        if abs(luminance(ink) - luminance(ground)) < 0.35:
            ink = BLACK if luminance(ground) > 0.5 else WHITE
        shades = {"light": 0.5, "second": 0.2, "metal": 0.3}
        colours = [mix(ink, ground, shades.get(part.role, 0.0)) for part in drawing.parts]
        lines = [ground] * len(colours)
    if not backed:  # a halo, or the clutter's edges would be taken for the object's
        for part in drawing.parts:
            fill_part(pen, frame, part, ground, grow=0.035 * frame.side)
    line = rng.uniform(0.006, 0.014) * frame.side
    for part, colour, line_colour in zip(drawing.parts, colours, lines, strict=True):
        fill_part(pen, frame, part, line_colour, grow=line)
        fill_part(pen, frame, part, colour)


def _backing(
    pen: ImageDraw.ImageDraw, frame: Frame, theme: Theme, rng: np.random.Generator
) -> Colour:
    """A disc or a card that carries the icon; returns its colour."""
    accent = theme.accent(rng)
    colour = (accent, mix(accent, WHITE, 0.6), theme.ground)[rng.integers(3)]
    (x, y), reach = frame.centre, rng.uniform(1.0, 1.15) * frame.radius
    box = (x - reach, y - reach, x + reach, y + reach)
    rim = mix(accent, BLACK, 0.2) if rng.random() < 0.5 else colour
    width = max(1, frame.side // 60)
    if rng.random() < 0.6:
        pen.ellipse(box, fill=colour, outline=rim, width=width)
    else:
        pen.rounded_rectangle(box, 0.25 * reach, fill=colour, outline=rim, width=width)
    if rng.random() < 0.2:
        start = rng.uniform(0, 360)
        pen.arc(box, start, start + rng.uniform(60, 300), fill=theme.ink, width=2 * width)
    return colour


def _contrasting(ground: Colour, rng: np.random.Generator) -> Colour:
    """A strong colour that stands out from the ground."""
    if luminance(ground) > 0.5:
        return random_colour(rng, (0.5, 1.0), (0.2, 0.5))
    return random_colour(rng, (0.0, 0.3), (0.9, 1.0))
