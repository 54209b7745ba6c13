"""Marks that tell individuals apart: which points of a surface a pattern colours.

A pattern is a function of surface coordinates: `s` around the body and `t` down it, in the units
of the object, with (0, 0) in the middle of the front. `width` and `height` are half the size of
what is seen of the surface from the front.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Pattern = Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]


def _saw(x: np.ndarray, pitch: float) -> np.ndarray:
    """The distance to the nearest multiple of `pitch`."""
    return np.abs(x - pitch * np.round(x / pitch))


def dots(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """Discs in staggered rows."""
    pitch = 0.85 * min(width, height)
    row = np.round(t / (0.8 * pitch))
    across = _saw(s - 0.5 * pitch * (row % 2), pitch)
    return across**2 + (t - row * 0.8 * pitch) ** 2 < (0.27 * pitch) ** 2


def stripes(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """Upright stripes."""
    pitch = 0.62 * width
    return _saw(s, pitch) < 0.24 * pitch


def rings(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """Level stripes."""
    pitch = 0.62 * height
    return _saw(t, pitch) < 0.24 * pitch


def band(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """One broad stripe around the middle."""
    return np.abs(t - 0.1 * height) < 0.3 * height


def check(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """A chess board."""
    size = 0.5 * min(width, height)
    return (np.floor(s / size) + np.floor(t / size)) % 2 == 0


def zigzag(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """One line that goes up and down."""
    pitch = 0.8 * width
    rise = 0.55 * height
    return np.abs(t + rise * (2 * _saw(s, pitch) / pitch - 0.5)) < 0.3 * height


def star(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """One five-pointed star."""
    size = 0.78 * min(width, height)
    angle = np.arctan2(s, -t)
    fifth = np.abs(angle - (2 * np.pi / 5) * np.round(angle * 5 / (2 * np.pi)))
    # The edge from a point (radius 1 at 0) to a notch (radius 0.42 at a tenth of the circle).
    notch = 0.42 * np.array([np.cos(np.pi / 5), np.sin(np.pi / 5)])
    edge = notch[1] / (notch[1] * np.cos(fifth) + (1 - notch[0]) * np.sin(fifth))
    return np.hypot(s, t) < size * edge


def heart(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """One heart."""
    size = 0.62 * min(width, height)
    x, y = s / size, 0.15 - t / size
    return (x**2 + y**2 - 1) ** 3 < x**2 * y**3


def sticker(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """One square label, put on at a slant."""
    size = 0.5 * min(width, height)
    return (np.abs(s + 0.18 * t) < size) & (np.abs(t - 0.18 * s) < size)


def plain(s: np.ndarray, t: np.ndarray, width: float, height: float) -> np.ndarray:
    """No mark at all."""
    return np.zeros(np.broadcast(s, t).shape, bool)


PATTERNS: dict[str, Pattern] = {
    "dots": dots,
    "stripes": stripes,
    "rings": rings,
    "band": band,
    "check": check,
    "zigzag": zigzag,
    "star": star,
    "heart": heart,
    "sticker": sticker,
    "plain": plain,
}
