"""Light on an object's parts, for the styles that show volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from ..canvas import Frame, cloud
from ..parts import Colour, Drawing


@dataclass(frozen=True)
class Light:
    """Where light comes from (a unit vector in the picture) and how it falls."""

    direction: np.ndarray
    depth: float
    """Difference between the lit and the unlit side of a part."""
    edge: float
    """Strength of the lit and shadowed rims."""
    gloss: float
    """Strength of highlights."""


def random_light(rng: np.random.Generator) -> Light:
    """Light from above, more or less from the left or the right."""
    angle = rng.uniform(-np.pi, 0) * 0.9 - 0.15
    return Light(
        direction=np.array([np.cos(angle), np.sin(angle)], dtype=np.float32),
        depth=rng.uniform(0.15, 0.4),
        edge=rng.uniform(0.3, 0.9),
        gloss=rng.uniform(0.0, 0.7) ** 1.5,
    )


def within_parts(
    drawing: Drawing, labels: np.ndarray, frame: Frame
) -> tuple[np.ndarray, np.ndarray]:
    """Where within its part every pixel lies, across and down: from -1 to 1.

    Meaningless where `labels` is 0.
    """
    count = len(drawing.parts)
    middle = np.zeros((count + 1, 2), dtype=np.float32)
    reach = np.ones((count + 1, 2), dtype=np.float32)
    for label, part in enumerate(drawing.parts, start=1):
        low, high = part.points.min(axis=0), part.points.max(axis=0)
        middle[label] = frame.place((low + high) / 2)
        reach[label] = np.maximum((high - low) / 2, 0.1) * frame.radius

    pixel = np.arange(frame.side, dtype=np.float32)
    across = (pixel[None, :] - middle[:, 0][labels]) / reach[:, 0][labels]
    down = (pixel[:, None] - middle[:, 1][labels]) / reach[:, 1][labels]
    return across, down


def shade(
    drawing: Drawing,
    colours: list[Colour],
    labels: np.ndarray,
    frame: Frame,
    light: Light,
    rng: np.random.Generator,
) -> np.ndarray:
    """The lit object as (side, side, 3) floats; meaningless where `labels` is 0.

    Every part is treated as a cushion: brighter where it faces the light, with a rim and a
    highlight. One table look-up per quantity lights all parts at once.
    """
    side = frame.side
    count = len(drawing.parts)
    gloss = np.zeros(count + 1, dtype=np.float32)
    for label, part in enumerate(drawing.parts, start=1):
        gloss[label] = light.gloss * (1.6 if part.role == "metal" else 1.0)

    across, down = within_parts(drawing, labels, frame)
    x, y = light.direction
    facing = across * x + down * y
    off_highlight = (across - 0.45 * x) ** 2 + (down - 0.45 * y) ** 2
    highlight = gloss[labels] * np.exp(-7.0 * off_highlight)

    # Later parts lie on top of earlier ones: blurred, the labels become a relief with rims.
    levels = np.concatenate([[0], np.linspace(150, 255, count)]).astype(np.uint8)
    relief = Image.fromarray(levels[labels]).filter(ImageFilter.BoxBlur(side * 0.012))
    height = np.asarray(relief, dtype=np.float32) / 255
    slope = np.zeros_like(height)
    slope[:, 1:-1] -= x * (height[:, 2:] - height[:, :-2])
    slope[1:-1] -= y * (height[2:] - height[:-2])

    grain = 0.12 * (cloud(rng, side, 14) - 0.5)
    brightness = 1 + light.depth * facing + light.edge * slope + grain
    base = np.array([(0, 0, 0), *colours], dtype=np.float32)[labels]
    return base * np.maximum(brightness, 0.15)[..., None] + 255 * highlight[..., None]
