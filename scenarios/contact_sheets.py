"""Contact sheets: many small pictures in rows and columns, to see what a drawn world looks like."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw

HEADER_HEIGHT = 16
GAP = 2


def contact_sheet(
    rows: Sequence[str],
    groups: Sequence[tuple[str, int]],
    picture: Callable[[int, int, int], np.ndarray],
    size: int,
    name_width: int = 72,
) -> Image.Image:
    """A named row for every entry of `rows`, and for every group (title, n) n columns.

    `picture(row, group, index)` is what is shown there, (size, size, 3) bytes.
    """
    pitch = size + GAP
    widths = [count * pitch + 3 * GAP for _, count in groups]
    shape = (name_width + sum(widths), HEADER_HEIGHT + len(rows) * pitch)
    sheet = Image.new("RGB", shape, (128, 128, 128))
    pen = ImageDraw.Draw(sheet)
    left = name_width
    for group, (title, count) in enumerate(groups):
        pen.text((left, 2), title, fill=(255, 255, 255))
        for row in range(len(rows)):
            for index in range(count):
                shown = Image.fromarray(picture(row, group, index))
                sheet.paste(shown, (left + index * pitch, HEADER_HEIGHT + row * pitch))
        left += widths[group]
    for row, name in enumerate(rows):
        top = HEADER_HEIGHT + row * pitch
        pen.text((4, top + size // 2 - 6), name, fill=(255, 255, 255))
    return sheet
