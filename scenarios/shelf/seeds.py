"""The version of the shelf's pictures, and generators seeded by it and a purpose alone."""

from __future__ import annotations

import numpy as np

from fsdil_bench import numpy_generator

WORLD_VERSION = 2
"""Part of every seed. Raise it when a change alters any picture."""


def generator(*purpose: object) -> np.random.Generator:
    """A generator of its own for `purpose`, the same on every machine."""
    return numpy_generator(WORLD_VERSION, "shelf", *purpose)
