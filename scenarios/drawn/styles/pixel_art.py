"""Pixel art: big square pixels in few colours with an outline, as in an old video game.

The picture is drawn on a grid of about 32 cells, where every cell counts. Shades between two
colours are dithered: cells of the one and the other in a pattern. Last it is enlarged, with hard
edges. There is no arithmetic but sums, products and roots, the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..canvas import Frame, label_map, random_frame
from ..parts import Colour, Drawing, Part
from ..shapes import pick
from .colour import BLACK, WHITE, bend, from_hsv, luminance, mix, part_colours, random_colour
from .shading import within_parts

Machine = Callable[[Colour], Colour]
"""From any colour to one that an old machine can show."""

EDGE, DARK, PLAIN, LIGHT = range(4)
"""The shades of a part."""

NEARLY_BLACK: Colour = (12, 12, 12)

_DITHER = ((0, 8, 2, 10), (12, 4, 14, 6), (3, 11, 1, 9), (15, 7, 13, 5))
"""Bayer's matrix: in which order the cells of a square take the lighter of two colours."""


def pixel_art(drawing: Drawing, rng: np.random.Generator, size: int) -> np.ndarray:
    """The drawing as the sprite of a game."""
    cells = pick(rng, 26, 32, 32)
    machine = _console if rng.random() < 0.7 else _handheld(rng)
    frame = random_frame(rng, cells, 0.8, 0.92)
    labels = label_map(drawing, frame)
    shades = _lit(drawing, labels, frame, rng)
    colours = _shades(drawing, machine, rng)
    seen = labels > 0
    dark_ground = colours[labels, PLAIN][seen].mean() > 140 and rng.random() < 0.5
    # Thin lines are all outline: with one of their own, spokes would make a disc.
    thin = np.array([False, *(_is_thin(part, frame) for part in drawing.parts)])[labels]
    shades[_inner_edges(np.where(thin, 0, labels))] = EDGE
    shades[thin] = EDGE
    if dark_ground:
        shades[thin & _beside(~seen)] = LIGHT

    picture = _ground(cells, dark_ground, machine, rng)
    picture[_beside(seen & ~thin) & ~seen] = machine(WHITE if dark_ground else NEARLY_BLACK)
    picture[seen] = colours[labels, shades][seen]
    nearest = np.arange(size) * cells // size
    return picture[nearest][:, nearest]


def _console(colour: Colour) -> Colour:
    """Four levels of red, green and blue."""
    red, green, blue = (85 * round(level / 85) for level in colour)
    return red, green, blue


def _handheld(rng: np.random.Generator) -> Machine:
    """Four tones of one hue."""
    hue, saturation = rng.random(), rng.uniform(0.15, 0.5)
    tones = [from_hsv(hue, saturation, value) for value in (0.12, 0.42, 0.72, 1.0)]
    return lambda colour: tones[min(3, int(5 * luminance(colour)))]


def _is_thin(part: Part, frame: Frame) -> bool:
    """Whether the part is a line of one or two cells."""
    return not part.closed and part.width * frame.radius < 2


def _lit(
    drawing: Drawing, labels: np.ndarray, frame: Frame, rng: np.random.Generator
) -> np.ndarray:
    """The shade of every cell of the sprite, with light from above."""
    across, down = within_parts(drawing, labels, frame)
    from_side, from_above = rng.uniform(-0.7, 0.7), rng.uniform(0.2, 0.7)
    return np.clip(_dithered(PLAIN + from_side * across - from_above * down), DARK, LIGHT)


def _dithered(levels: np.ndarray) -> np.ndarray:
    """Whole numbers that are on average what `levels` are."""
    side = len(levels)
    order = np.array(_DITHER, dtype=np.float32) / 16
    repeats = -(-side // len(order))
    return np.floor(levels + np.tile(order, (repeats, repeats))[:side, :side]).astype(int)


def _shades(drawing: Drawing, machine: Machine, rng: np.random.Generator) -> np.ndarray:
    """The colours of every part's shades; those of the ground, label 0, are never seen."""
    saturation, value = rng.uniform(1.1, 1.7), rng.uniform(1.0, 1.2)
    palette = {role: bend(c, 0.0, saturation, value) for role, c in drawing.colours.items()}
    colours = [BLACK, *part_colours(drawing, palette, 0.15)]
    return np.array(
        [
            [
                machine(mix(colour, BLACK, 0.65)),
                machine(mix(colour, BLACK, 0.3)),
                machine(colour),
                machine(mix(colour, WHITE, 0.5)),
            ]
            for colour in colours
        ],
        dtype=np.uint8,
    )


def _inner_edges(labels: np.ndarray) -> np.ndarray:
    """Where a part goes behind another one."""
    edges = np.zeros(labels.shape, dtype=bool)
    for turned, marked in ((labels, edges), (labels.T, edges.T)):
        above, below = turned[:-1], turned[1:]
        marked[:-1] |= (above > 0) & (above < below)
        marked[1:] |= (below > 0) & (below < above)
    return edges


def _beside(mask: np.ndarray) -> np.ndarray:
    """The cells above, below, left and right of those of the mask."""
    wide = np.pad(mask, 1)
    return wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]


def _ground(cells: int, dark: bool, machine: Machine, rng: np.random.Generator) -> np.ndarray:
    """Two colours: a plain ground, a chequered one, a dithered sky, stars, or a wall of bricks."""
    first = random_colour(rng, (0.1, 0.45), (0.1, 0.4) if dark else (0.92, 1.0))
    second = mix(first, WHITE if dark else BLACK, rng.uniform(0.2, 0.35))
    row, column = np.arange(cells)[:, None], np.arange(cells)[None, :]
    kind = rng.integers(5)
    if kind == 0:
        pattern = np.zeros((cells, cells), dtype=int)
    elif kind == 1:
        tile = pick(rng, 2, 4)
        pattern = (row // tile + column // tile) % 2
    elif kind == 2:
        pattern = _dithered(np.repeat(row / cells, cells, axis=1))
    elif kind == 3:
        pattern = (rng.random((cells, cells)) < 0.03).astype(int)
    else:
        mortar = (row % 4 == 0) | ((column + row // 4 % 2 * 4) % 8 == 0)
        pattern = (mortar & (row >= rng.uniform(0.0, 0.8) * cells)).astype(int)
    return np.array([machine(first), machine(second)], dtype=np.uint8)[pattern]
