"""Sketches: doubled, unsteady pencil or ink lines and hatching on grained paper."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ..canvas import (
    Frame,
    cloud,
    fill_part,
    label_map,
    outline,
    random_frame,
    resample,
    shrink,
    stroke,
    to_image,
    wobble,
)
from ..parts import Drawing
from .colour import luminance

SUPERSAMPLING = 2


def sketch(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing in graphite or ink."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.68, 0.93)
    graphite = _lines(drawing, frame, rng)
    if rng.random() < 0.8:
        graphite = np.maximum(graphite, _hatching(drawing, frame, rng))
    if rng.random() < 0.5:
        graphite = _smudge(graphite, side, rng)
    grain = rng.random((side, side), dtype=np.float32)
    graphite *= 1 - rng.uniform(0.1, 0.5) * grain

    paper = rng.uniform(205, 255) - 12 * grain - rng.uniform(0, 25) * cloud(rng, side, 4)
    ink = rng.uniform(5, 70)
    levels = paper + (ink - paper) * graphite
    if rng.random() < 0.25:
        return shrink(_sepia(levels, rng), size)
    return shrink(to_image(levels), size)


def _lines(drawing: Drawing, frame: Frame, rng: np.random.Generator) -> np.ndarray:
    """How much graphite the outlines leave at every pixel, in [0, 1]."""
    image = Image.new("L", (frame.side, frame.side))
    pen = ImageDraw.Draw(image)
    width = rng.uniform(0.006, 0.02) * frame.side
    shake = rng.uniform(0.004, 0.018)
    passes = int(rng.integers(1, 4))
    for part in drawing.parts:
        if not part.closed and part.width * frame.radius > 4 * width:
            fill_part(pen, frame, part, int(rng.integers(190, 256)), grow=width)
            fill_part(pen, frame, part, 0)
            continue
        fill_part(pen, frame, part, 0)
        line = resample(outline(part), 0.06)
        hasty = rng.integers(150, 256, passes)
        for darkness in np.sort(hasty).tolist():
            shaken = wobble(line, rng, shake, rng.uniform(0.4, 1.5))
            stroke(pen, frame.place(shaken), width * (0.7 if part.detail else 1.0), darkness)
    return np.asarray(image, dtype=np.float32) / 255


def _hatching(drawing: Drawing, frame: Frame, rng: np.random.Generator) -> np.ndarray:
    """Graphite of parallel, slightly bent lines, denser on darker parts."""
    side = frame.side
    labels = label_map(drawing, frame)
    tones = [0.0]
    for part in drawing.parts:
        shadow = 1 - luminance(drawing.colours[part.role])
        hatched = part.closed and rng.random() < 0.75
        tones.append(shadow * rng.uniform(0.2, 0.75) if hatched else 0.0)
    angle = rng.uniform(0, np.pi)
    spacing = rng.uniform(0.03, 0.055) * side
    pixel = np.arange(side, dtype=np.float32) / spacing
    waves = (pixel * np.cos(angle))[None, :] + (pixel * np.sin(angle))[:, None]
    waves += 1.5 * cloud(rng, side, 5)
    distance = np.abs(waves % 1 - 0.5) * 2
    tone = np.array(tones, dtype=np.float32)[labels]
    return rng.uniform(0.45, 0.85) * np.clip((tone - distance) * 4 + 0.5, 0, 1) * (tone > 0)


def _smudge(graphite: np.ndarray, side: int, rng: np.random.Generator) -> np.ndarray:
    """Some graphite rubbed off into a soft shadow around the lines."""
    soft = to_image(graphite * 255).filter(ImageFilter.BoxBlur(rng.uniform(0.02, 0.05) * side))
    rubbed = cloud(rng, side, 3) * rng.uniform(0.4, 0.9)
    return np.clip(graphite + rubbed * np.asarray(soft, dtype=np.float32) / 255, 0, 1)


def _sepia(levels: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """The grey picture in brown on yellowed paper."""
    fade = rng.uniform(0.3, 1.0) * np.array((0.0, 0.08, 0.22), dtype=np.float32)
    return to_image(levels[..., None] * (1 - fade) + 15 * (fade[::-1] * 4))
