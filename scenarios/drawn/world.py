"""The drawn world: a pure function from (class, domain, index, split) to a picture."""

from __future__ import annotations

import hashlib

import numpy as np

from .objects import OBJECTS
from .pose import pose
from .styles import STYLES, VALIDATION_STYLES

WORLD_VERSION = 1
"""Part of every seed. Raise it when a change alters any picture."""

CLASSES: tuple[str, ...] = tuple(OBJECTS)
DOMAINS: tuple[str, ...] = tuple(STYLES)
VALIDATION_DOMAINS: tuple[str, ...] = tuple(VALIDATION_STYLES)
ALL_STYLES = STYLES | VALIDATION_STYLES

POSES: dict[str, dict[str, float]] = {
    "quickdraw": {"rotate": 15.0, "stretch": 0.4, "shear": 0.25},
}
"""Where a domain's viewpoints differ from the usual: a hasty hand gets proportions wrong."""


def draw(
    class_name: str, domain: str, index: int, *, split: str = "train", size: int = 64
) -> np.ndarray:
    """The picture of that name: (size, size, 3) bytes, the same on every call."""
    name = f"drawn/{WORLD_VERSION}/{split}/{domain}/{class_name}/{index}"
    # "manner" is an old word for the style. It is part of the seed, so it cannot change.
    object_rng, style_rng = _generator(f"{name}/object"), _generator(f"{name}/manner")
    drawing = pose(OBJECTS[class_name](object_rng), object_rng, **POSES.get(domain, {}))
    return ALL_STYLES[domain](drawing, style_rng, size)


def _generator(text: str) -> np.random.Generator:
    """A generator seeded only by a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
