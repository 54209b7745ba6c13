"""Real-like pictures: lit objects on textured grounds, with shadow, clutter, blur and noise."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

from ..canvas import Frame, label_map, random_frame, shrink, to_image
from ..parts import Drawing
from .colour import bend, part_colours
from .scenery import scenery
from .shading import Light, random_light, shade

SUPERSAMPLING = 2


def real(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as if photographed."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.6, 0.92)
    light = random_light(rng)
    saturation, value = rng.uniform(0.6, 1.1), rng.uniform(0.8, 1.1)
    tones = {
        role: bend(colour, rng.normal(0, 0.015), saturation, value)
        for role, colour in drawing.colours.items()
    }
    labels = label_map(drawing, frame)
    lit = shade(drawing, part_colours(drawing, tones, 0.07), labels, frame, light, rng)
    ground = scenery(side, rng)
    ground *= _shadow(labels, frame, light, rng)[..., None]
    scene = np.where((labels > 0)[..., None], lit, ground)
    scene *= _illumination(side, rng)
    photo = to_image(scene)
    blur = rng.uniform(0.0, 0.011) * side
    if blur > 0.5:
        photo = photo.filter(ImageFilter.BoxBlur(blur / 2))
    pixels = shrink(photo, size).astype(np.float32)
    pixels += rng.standard_normal(pixels.shape, dtype=np.float32) * rng.uniform(1, 8)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _shadow(labels: np.ndarray, frame: Frame, light: Light, rng: np.random.Generator) -> np.ndarray:
    """What share of the light reaches the ground: the object's soft shadow, away from the light."""
    side = frame.side
    mask = Image.fromarray((labels > 0).astype(np.uint8) * 255)
    soft = mask.filter(ImageFilter.BoxBlur(rng.uniform(0.02, 0.05) * side))
    x, y = (-light.direction * rng.uniform(0.02, 0.08) * side).round().astype(int).tolist()
    cast = np.asarray(soft.transform(soft.size, Image.Transform.AFFINE, (1, 0, -x, 0, 1, -y)))
    return 1 - rng.uniform(0.3, 0.65) / 255 * cast.astype(np.float32)


def _illumination(side: int, rng: np.random.Generator) -> np.ndarray:
    """Exposure, colour temperature, and the fall of light across the scene."""
    warmth = rng.normal(0, 0.1)
    tint = np.array((1 + warmth, 1 + rng.normal(0, 0.02), 1 - warmth), dtype=np.float32)
    along = np.linspace(-1, 1, side, dtype=np.float32)
    across, down = rng.uniform(-0.15, 0.15, 2)
    fall = rng.uniform(0.7, 1.15) + across * along[None, :] + down * along[:, None]
    return fall.astype(np.float32)[..., None] * tint
