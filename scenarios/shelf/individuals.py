"""The fifty individuals: five of every kind, each with a shape, a colour and marks of its own.

Two of every kind have the same colour, and every colour and mark occurs with several kinds: neither
colour nor marks nor outline alone tell who it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..drawn.parts import Colour
from .things import Shape

COLOURS: dict[str, Colour] = {
    "red": (205, 38, 38),
    "orange": (238, 128, 28),
    "yellow": (244, 208, 48),
    "green": (48, 148, 62),
    "turquoise": (48, 184, 180),
    "blue": (40, 84, 196),
    "purple": (124, 58, 164),
    "pink": (240, 132, 172),
    "brown": (124, 78, 44),
    "white": (240, 240, 236),
    "grey": (140, 142, 146),
    "black": (38, 38, 42),
}


@dataclass(frozen=True)
class Individual:
    """One thing that a person would know again."""

    kind: str
    shape: Shape
    colour: str
    mark: str
    mark_colour: str


#: Kind: for each of its five individuals the shape, the colour, the mark and the mark's colour.
_TABLE: dict[str, tuple[tuple[Shape, str, str, str], ...]] = {
    "cup": (
        ((0.80, 0.62, 0.62, 0.58, 0.40), "green", "dots", "white"),
        ((0.62, 0.80, 0.72, 0.36, 0.36), "green", "stripes", "yellow"),
        ((0.85, 0.56, 0.66, 0.52, 0.44), "red", "band", "white"),
        ((0.95, 0.60, 0.50, 0.40, 0.34), "blue", "star", "yellow"),
        ((0.70, 0.66, 0.66, 0.66, 0.42), "white", "check", "black"),
    ),
    "bottle": (
        ((0.16, 0.44, 0.42, -0.50, -0.10), "blue", "rings", "white"),
        ((0.16, 0.66, 0.60, -0.55, 0.05), "blue", "heart", "pink"),
        ((0.30, 0.54, 0.50, -0.60, -0.30), "white", "dots", "red"),
        ((0.15, 0.52, 0.52, -0.40, -0.05), "green", "sticker", "yellow"),
        ((0.22, 0.58, 0.48, -0.62, -0.25), "orange", "zigzag", "black"),
    ),
    "can": (
        ((0.48, 0.82), "red", "zigzag", "white"),
        ((0.66, 0.60), "red", "dots", "black"),
        ((0.52, 0.76), "yellow", "stripes", "blue"),
        ((0.62, 0.78), "grey", "band", "purple"),
        ((0.44, 0.88), "black", "star", "white"),
    ),
    "ball": (
        ((0.86, 0.86), "orange", "stripes", "black"),
        ((0.84, 0.84), "white", "dots", "black"),
        ((0.82, 0.82), "yellow", "band", "blue"),
        ((0.86, 0.86), "yellow", "star", "red"),
        ((0.96, 0.66), "purple", "check", "white"),
    ),
    "teapot": (
        ((0.62, 0.54, 0.22), "white", "dots", "blue"),
        ((0.56, 0.66, 0.18), "white", "band", "red"),
        ((0.66, 0.46, 0.26), "turquoise", "stripes", "white"),
        ((0.58, 0.58, 0.30), "brown", "plain", "black"),
        ((0.64, 0.60, 0.16), "black", "heart", "pink"),
    ),
    "lamp": (
        ((0.40, 0.74, 0.86, 0.14, 0.34), "yellow", "rings", "green"),
        ((0.62, 0.66, 0.84, 0.26, 0.30), "yellow", "dots", "purple"),
        ((0.26, 0.80, 0.92, 0.10, 0.40), "red", "plain", "white"),
        ((0.50, 0.70, 0.96, 0.20, 0.36), "white", "zigzag", "blue"),
        ((0.56, 0.76, 0.80, 0.30, 0.28), "pink", "check", "white"),
    ),
    "hat": (
        ((0.80, 0.52, 0.52, 0.90, 0.20), "black", "band", "red"),
        ((0.60, 0.46, 0.58, 0.98, 0.26), "black", "star", "yellow"),
        ((0.70, 0.60, 0.74, 0.80, 0.14), "blue", "dots", "white"),
        ((0.64, 0.50, 0.54, 1.00, 0.22), "brown", "plain", "black"),
        ((0.92, 0.30, 0.62, 0.86, 0.20), "green", "sticker", "orange"),
    ),
    "car": (
        ((0.46, 0.72, -0.10, 0.24, 0.46), "red", "stripes", "white"),
        ((0.60, 0.66, -0.16, 0.22, 0.50), "red", "star", "yellow"),
        ((0.52, 0.82, -0.30, 0.25, 0.50), "blue", "check", "white"),
        ((0.40, 0.60, 0.00, 0.30, 0.40), "green", "plain", "black"),
        ((0.62, 0.78, -0.24, 0.22, 0.46), "yellow", "zigzag", "black"),
    ),
    "book": (
        ((0.62, 0.86, 0.14), "blue", "star", "white"),
        ((0.66, 0.84, 0.08), "blue", "rings", "orange"),
        ((0.56, 0.88, 0.20), "brown", "band", "yellow"),
        ((0.70, 0.78, 0.10), "pink", "heart", "red"),
        ((0.60, 0.84, 0.16), "turquoise", "dots", "black"),
    ),
    "umbrella": (
        ((1.00, 5, 0.72, 0.16), "purple", "stripes", "white"),
        ((1.15, 4, 0.66, 0.18), "purple", "dots", "yellow"),
        ((0.90, 6, 0.76, 0.14), "orange", "rings", "blue"),
        ((1.05, 3, 0.70, 0.20), "grey", "heart", "red"),
        ((1.20, 4, 0.64, 0.16), "red", "check", "white"),
    ),
}

INDIVIDUALS: tuple[Individual, ...] = tuple(
    Individual(kind, *row) for kind, rows in _TABLE.items() for row in rows
)
