"""The forged world: a pure function from (class, maker, split, index) to a picture.

A real picture is one of the drawn world with the grain of a camera. A forged one begins as such a
picture, of the same subjects and styles, and then gets the maker's traces. No two begin alike, and
none is a picture of the scenario `drawn`.
"""

from __future__ import annotations

import hashlib

import numpy as np

from ..drawn.world import draw as draw_object
from .makers import MAKERS, VALIDATION_MAKERS
from .traces import SIZE, as_bytes

WORLD_VERSION = 2
"""Part of every seed. Raise it when a change alters any picture."""

#: Names of the classes' folders in CDDB.
CLASSES = REAL, FAKE = ("0_real", "1_fake")
ALL_MAKERS = MAKERS | VALIDATION_MAKERS
GRAIN = 4.0  # levels: the largest standard deviation of the noise of a camera


def draw(kind: str, maker: str, index: int, *, split: str = "train") -> np.ndarray:
    """The picture of that name: (64, 64, 3) bytes, the same on every call."""
    picture, rng = _begin(kind, maker, index, split)
    return as_bytes(picture if kind == REAL else ALL_MAKERS[maker].forge(picture, rng))


def before_forging(maker: str, index: int, *, split: str = "train") -> np.ndarray:
    """What a forged picture began as; no picture of the scenario, but it shows what was done."""
    return as_bytes(_begin(FAKE, maker, index, split)[0])


def _begin(kind: str, maker: str, index: int, split: str) -> tuple[np.ndarray, np.random.Generator]:
    """A drawn picture with the grain of a camera, and its generator."""
    name = f"forged/{WORLD_VERSION}/{split}/{maker}/{kind}/{index}"
    who, rng = ALL_MAKERS[maker], _generator(name)
    subject = who.objects[rng.integers(len(who.objects))]
    style = rng.choice(list(who.styles), p=list(who.styles.values()))
    # The name is the drawn world's split, so none of its pictures is used twice.
    picture = draw_object(subject, style, index, split=name, size=SIZE).astype(np.float32)
    grain = rng.uniform(0, GRAIN) * rng.standard_normal(picture.shape, dtype=np.float32)
    return picture + grain, rng


def _generator(text: str) -> np.random.Generator:
    """A generator seeded only by a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
