"""The six styles of drawing, in the order of DomainNet's usual table: one function each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..parts import Drawing
from .clipart import clipart
from .infograph import infograph
from .painting import painting
from .quickdraw import quickdraw
from .real import real
from .sketch import sketch

Style = Callable[[Drawing, np.random.Generator, int], np.ndarray]

STYLES: dict[str, Style] = {
    "real": real,
    "painting": painting,
    "clipart": clipart,
    "sketch": sketch,
    "quickdraw": quickdraw,
    "infograph": infograph,
}

__all__ = [
    "STYLES",
    "Style",
    "clipart",
    "infograph",
    "painting",
    "quickdraw",
    "real",
    "sketch",
]
