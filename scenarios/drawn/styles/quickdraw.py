"""Quick drawings: one thin, hasty dark line on white, as in the QuickDraw data set."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from ..canvas import (
    outline,
    random_frame,
    resample,
    round_corners,
    shrink,
    stroke,
    wobble,
)
from ..parts import Drawing, Part

SUPERSAMPLING = 4


def quickdraw(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as drawn in twenty seconds with a mouse."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.72, 0.92)
    image = Image.new("L", (side, side), 255)
    pen = ImageDraw.Draw(image)
    width = rng.uniform(0.014, 0.024) * side
    ink = int(rng.integers(0, 60))
    haste = rng.uniform(0.3, 1.0)
    sees_through = rng.random() < 0.15
    for part in drawing.parts:
        if part.detail >= 2 or (part.detail == 1 and rng.random() < 0.1 + 0.35 * haste):
            continue
        line = frame.place(_hasty_line(part, rng, haste))
        if part.closed and not sees_through:
            pen.polygon(line.ravel().tolist(), fill=255)
        stroke(pen, line, width, ink)
    return shrink(image, size)


def _hasty_line(part: Part, rng: np.random.Generator, haste: float) -> np.ndarray:
    """The part's line begun anywhere, shaken, misplaced, left open or drawn past its start."""
    line = resample(outline(part), 0.07)
    if part.closed:
        ring = line[:-1]
        start = int(rng.integers(len(ring)))
        # Negative leaves a gap, positive overlaps. A short ring cannot spare much of itself.
        excess = int(rng.integers(-2, 4) * haste * min(1.0, len(ring) / 30))
        line = np.take(ring, np.arange(start, start + len(ring) + 1 + excess), axis=0, mode="wrap")
    if len(line) > 20 and rng.random() < 0.6:
        line = round_corners(line, 1)
    length = np.abs(np.diff(line, axis=0)).sum()
    line = wobble(line, rng, 0.016 * haste * min(1.0, length), rng.uniform(0.5, 1.2))
    return line + rng.normal(0.0, 0.014 * haste, 2)
