"""A part of a data set as both libraries give it: pictures by number, and a label for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Labelled:
    """`classes` are the names of the labels, or nothing where the data set names none.

    `picture` returns the picture of a number, as Pillow's image.
    """

    labels: np.ndarray
    picture: Callable[[int], Any]
    classes: tuple[str, ...] = ()
