"""Viewpoint: the same object seen mirrored, turned, stretched, slanted or in perspective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .parts import Drawing
from .shapes import fitted


def pose(
    drawing: Drawing,
    rng: np.random.Generator,
    *,
    mirror: float = 0.5,
    rotate: float = 12.0,
    stretch: float = 0.15,
    shear: float = 0.12,
    perspective: float = 0.12,
) -> Drawing:
    """The drawing from a random viewpoint, centred and fitted into [-1, 1] with its aspect kept.

    `mirror` is the probability of exchanging left and right; the others are the largest strength
    either way: `rotate` in degrees, `stretch` as the logarithm of the ratio of height to width,
    `shear` as the slant, and `perspective` as how much nearer one edge is than the middle.
    """
    flip = -1.0 if rng.random() < mirror else 1.0
    angle, ratio, slant, far_x, far_y = rng.uniform(-1, 1, 5) * (
        np.deg2rad(rotate),
        stretch / 2,
        shear,
        perspective,
        perspective,
    )
    c, s = np.cos(angle), np.sin(angle)
    matrix = (
        np.diag([flip * np.exp(-ratio), np.exp(ratio)])
        @ np.array([[1.0, 0.0], [slant, 1.0]])
        @ np.array([[c, s], [-s, c]])
    )

    def seen(points: np.ndarray) -> np.ndarray:
        moved = points @ matrix
        return moved / (1 + moved @ np.array([far_x, far_y]))[:, None]

    parts = [replace(p, points=seen(p.points)) for p in drawing.parts]
    return replace(drawing, parts=tuple(fitted(parts)))
