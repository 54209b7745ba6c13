"""The styles of drawing, one function each: six of the stream, and two to choose options on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..parts import Drawing
from .clipart import clipart
from .infograph import infograph
from .painting import painting
from .pixel_art import pixel_art
from .quickdraw import quickdraw
from .real import real
from .sketch import sketch
from .woodcut import woodcut

Style = Callable[[Drawing, np.random.Generator, int], np.ndarray]

#: The styles of the stream, in the order of DomainNet's usual table. The first is the base.
STYLES: dict[str, Style] = {
    "real": real,
    "painting": painting,
    "clipart": clipart,
    "sketch": sketch,
    "quickdraw": quickdraw,
    "infograph": infograph,
}

#: Styles that only the variant `@validation` has: options are chosen on them.
VALIDATION_STYLES: dict[str, Style] = {
    "woodcut": woodcut,
    "pixel art": pixel_art,
}

__all__ = [
    "STYLES",
    "VALIDATION_STYLES",
    "Style",
    "clipart",
    "infograph",
    "painting",
    "pixel_art",
    "quickdraw",
    "real",
    "sketch",
    "woodcut",
]
