"""The six manners of drawing, in the order of DomainNet's usual table: one function each."""

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

Manner = Callable[[Drawing, np.random.Generator, int], np.ndarray]

MANNERS: dict[str, Manner] = {
    "real": real,
    "painting": painting,
    "clipart": clipart,
    "sketch": sketch,
    "quickdraw": quickdraw,
    "infograph": infograph,
}

__all__ = [
    "MANNERS",
    "Manner",
    "clipart",
    "infograph",
    "painting",
    "quickdraw",
    "real",
    "sketch",
]
