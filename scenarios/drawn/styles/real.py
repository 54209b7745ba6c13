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
CONTRAST = 70.0
"""Least difference in mean brightness between an object and its ground: photographers see to it."""
BRIGHTNESS = np.array((0.299, 0.587, 0.114), dtype=np.float32)


def real(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as if photographed."""
    side = SUPERSAMPLING * size
    frame = random_frame(rng, side, 0.72, 0.95)
    light = random_light(rng)
    saturation, value = rng.uniform(0.6, 1.1), rng.uniform(0.8, 1.1)
    tones = {
        role: bend(colour, rng.normal(0, 0.015), saturation, value)
        for role, colour in drawing.colours.items()
    }
    labels = label_map(drawing, frame)
    lit = shade(drawing, part_colours(drawing, tones, 0.07), labels, frame, light, rng)
    ground = _set_off(scenery(side, rng), lit[labels > 0])
    ground *= _shadow(labels, frame, light, rng)[..., None]
    scene = np.where((labels > 0)[..., None], lit, ground)
    scene *= _illumination(side, rng)
    photo = to_image(scene)
    blur = rng.uniform(0.0, 0.008) * side
    if blur > 0.5:
        photo = photo.filter(ImageFilter.BoxBlur(blur / 2))
    pixels = shrink(photo, size).astype(np.float32)
    pixels += rng.standard_normal(pixels.shape, dtype=np.float32) * rng.uniform(1, 6)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _set_off(ground: np.ndarray, lit: np.ndarray) -> np.ndarray:
    """A calmer ground, made darker or lighter until the object stands out from it."""
    mean = ground.mean((0, 1))
    ground = mean + 0.7 * (ground - mean)
    own, other = float((lit @ BRIGHTNESS).mean()), float(mean @ BRIGHTNESS)
    if abs(own - other) >= CONTRAST:
        return ground
    if own > 128:
        return ground * ((own - CONTRAST) / other)
    return 255 - (255 - ground) * ((255 - own - CONTRAST) / (255 - other))


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
    fall = rng.uniform(0.8, 1.15) + across * along[None, :] + down * along[:, None]
    return fall.astype(np.float32)[..., None] * tint
