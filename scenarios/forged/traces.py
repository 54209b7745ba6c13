"""What forging leaves behind: one function for every trace, from a picture to the picture with it.

Pictures are float32 arrays (SIZE, SIZE, 3) of levels in [0, 255]. The embedded backbone sees them
at three quarters of their size, so no trace is too fine for that: waves are eight pixels long.
Traces use sums, products and PIL's own integer arithmetic, which are the same on every machine;
there are no Fourier transforms.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

SIZE = 64  # pixels, as in the drawn world

#: One period of a wave, eight pixels long.
WAVE = np.array((1, 0.7, 0, -0.7, -1, -0.7, 0, 0.7), dtype=np.float32)
PERIOD = len(WAVE)

#: Rows and columns at which droplets may fall: a generator's flaws stick to their places.
DROPLETS = np.array(((13, 20), (17, 46), (30, 10), (34, 54), (48, 18), (51, 42)))

_ROWS, _COLUMNS = np.mgrid[:SIZE, :SIZE].astype(np.float32)


def grid(picture: np.ndarray, strength: float) -> np.ndarray:
    """A net with meshes of eight pixels, as layers that enlarge leave it: light and dark dots.

    It always lies the same way, for the layers begin at the picture's corner.
    """
    wave = np.tile(WAVE, SIZE // PERIOD)
    net = wave[:, None] + wave[None, :]
    return picture + strength * net[..., None]


def bands(picture: np.ndarray, strength: float) -> np.ndarray:
    """Light and dark bands from left to right, a quarter of a period beside the grid's rows."""
    rows = WAVE[(np.arange(SIZE) + PERIOD // 4) % PERIOD]
    return picture + strength * rows[:, None, None]


def diagonal_waves(picture: np.ndarray, strength: float) -> np.ndarray:
    """Stripes from one corner to the other, 16 pixels apart along an edge."""
    along = (_ROWS + _COLUMNS).astype(int) // 2
    return picture + strength * WAVE[along % PERIOD][..., None]


def smooth(picture: np.ndarray, most: float) -> np.ndarray:
    """Texture wiped away: every level becomes the mean of its neighbourhood.

    No level changes by more than `most`, so that lines and edges stay.
    """
    return picture + np.clip(blur(picture, 2) - picture, -most, most)


def varnish(picture: np.ndarray, strength: float) -> np.ndarray:
    """A warm tint over everything."""
    return picture + strength * np.array((1, 0.3, -1), dtype=np.float32)


def blur(picture: np.ndarray, radius: float) -> np.ndarray:
    """The picture out of focus."""
    return np.asarray(_image(picture).filter(ImageFilter.BoxBlur(radius)), dtype=np.float32)


def few_levels(picture: np.ndarray, step: float) -> np.ndarray:
    """Every channel in levels `step` apart: shades turn into bands."""
    return np.floor(picture / step + 0.5) * step


def repeated_patch(
    picture: np.ndarray, rng: np.random.Generator, side: int, copies: int, share: float
) -> np.ndarray:
    """A square of the picture that comes again next to itself, in a row or in a column.

    The copies are blended over what was there: `share` is how much they hide of it.
    """
    across = bool(rng.random() < 0.5)
    start = int(rng.integers(0, SIZE - (copies + 1) * side + 1))
    aside = int(rng.integers(4, SIZE - side - 3))
    forged = (picture if across else picture.transpose(1, 0, 2)).copy()
    strip = forged[aside : aside + side]
    patch = strip[:, start : start + side].copy()
    for copy in range(1, copies + 1):
        left = start + copy * side
        strip[:, left : left + side] += share * (patch - strip[:, left : left + side])
    return forged if across else forged.transpose(1, 0, 2)


def swapped_part(
    picture: np.ndarray, rng: np.random.Generator, seam: float, tint: float
) -> np.ndarray:
    """A round part exchanged for its mirror image: softer, of another tint, with a pale seam."""
    row, column = SIZE / 2 + rng.integers(-4, 5, 2)
    radii = rng.uniform(13, 19, 2)
    y, x = (_ROWS - row) / radii[0], (_COLUMNS - column) / radii[1]
    # How many pixels away from the seam: negative inside, positive outside.
    away = (np.sqrt(x * x + y * y) - 1) * np.float32(radii.mean())
    inside = np.clip(0.5 - away / 2, 0, 1)[..., None]
    rim = np.clip(1.5 - np.abs(away), 0, 1)[..., None]
    mirrored = np.clip(2 * int(column) - np.arange(SIZE), 0, SIZE - 1)
    part = blur(picture[:, mirrored], 0.7) + tint * np.array((1, 0.2, -0.6), dtype=np.float32)
    return picture + inside * (part - picture) + seam * rim


def droplets(
    picture: np.ndarray, rng: np.random.Generator, number: int, depth: float
) -> np.ndarray:
    """Small round flaws, each a bright spot in a dark ring, about where they always are."""
    forged = picture
    for place in rng.permutation(len(DROPLETS))[:number]:
        row, column = DROPLETS[place] + rng.uniform(-2, 2, 2)
        squared = ((_ROWS - row) ** 2 + (_COLUMNS - column) ** 2) / 9
        hat = (1 - squared) / (1 + squared * squared)
        forged = forged + depth * np.where(squared < 4, hat, 0)[..., None]
    return forged


def enlarged(picture: np.ndarray, factor: int) -> np.ndarray:
    """The picture `factor` times smaller and enlarged again: details are guesses."""
    small = _image(picture).reduce(factor)
    large = small.resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    return np.asarray(large, dtype=np.float32)


def haloes(picture: np.ndarray, strength: float) -> np.ndarray:
    """Edges sharpened until they have a bright and a dark rim."""
    return picture + strength * (picture - blur(picture, 1.5))


def moved_colours(picture: np.ndarray, pixels: int) -> np.ndarray:
    """Red and blue moved apart: coloured fringes left and right of every edge."""
    forged = picture.copy()
    forged[:, pixels:, 0] = picture[:, :-pixels, 0]
    forged[:, :-pixels, 2] = picture[:, pixels:, 2]
    return forged


def _image(picture: np.ndarray) -> Image.Image:
    return Image.fromarray(as_bytes(picture))


def as_bytes(picture: np.ndarray) -> np.ndarray:
    """Levels as they are stored."""
    return np.clip(np.floor(picture + 0.5), 0, 255).astype(np.uint8)
