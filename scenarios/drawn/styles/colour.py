"""Choosing and bending colours."""

from __future__ import annotations

import colorsys

import numpy as np

from ..parts import Colour, Drawing, Role

WHITE: Colour = (255, 255, 255)
BLACK: Colour = (0, 0, 0)


def from_hsv(hue: float, saturation: float, value: float) -> Colour:
    """A colour by hue, saturation and value, each in [0, 1]; too much of them is cut off."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, min(saturation, 1.0), min(value, 1.0))
    return round(red * 255), round(green * 255), round(blue * 255)


def random_colour(
    rng: np.random.Generator, saturation: tuple[float, float], value: tuple[float, float]
) -> Colour:
    """Any hue, within ranges of saturation and value."""
    return from_hsv(rng.random(), rng.uniform(*saturation), rng.uniform(*value))


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """`share` of the way from one colour to the other."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def bend(colour: Colour, turn: float = 0.0, saturation: float = 1.0, value: float = 1.0) -> Colour:
    """The colour with its hue turned and its saturation and value multiplied."""
    hue, old_saturation, old_value = colorsys.rgb_to_hsv(*(level / 255 for level in colour))
    return from_hsv(hue + turn, old_saturation * saturation, old_value * value)


def luminance(colour: Colour) -> float:
    """How light a colour looks, in [0, 1]."""
    red, green, blue = colour
    return (0.3 * red + 0.59 * green + 0.11 * blue) / 255


def part_colours(drawing: Drawing, palette: dict[Role, Colour], step: float) -> list[Colour]:
    """The colour of every part: its role's, a `step` lighter or darker than its neighbours'.

    Without the step, parts of one role that overlap would melt into one area.
    """
    colours = []
    for index, part in enumerate(drawing.parts):
        sign = (0, 1, -1)[index % 3]
        target = WHITE if sign > 0 else BLACK
        colours.append(mix(palette[part.role], target, step * abs(sign)))
    return colours
