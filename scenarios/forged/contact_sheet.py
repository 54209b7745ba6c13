"""A contact sheet of the forged world: real pictures above, forged ones below them, then traces.

    python -m fsdil_scenarios.forged.contact_sheet --out sheet.png

The third row is what forging changed, three times as strong, around grey.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from .traces import SIZE, as_bytes
from .world import ALL_MAKERS, FAKE, REAL, before_forging, draw

NAME_WIDTH = 48
HEADER_HEIGHT = 16
GAP = 2
GAIN = 3


def trace(maker: str, index: int, split: str) -> np.ndarray:
    """What forging changed, around grey."""
    before = before_forging(maker, index, split=split).astype(np.float32)
    return as_bytes(128 + GAIN * (draw(FAKE, maker, index, split=split) - before))


def contact_sheet(makers: Sequence[str], samples: int, split: str, zoom: int) -> Image.Image:
    """Three rows, a group of `samples` columns for every maker."""
    pitch = SIZE * zoom + GAP
    group = samples * pitch + 3 * GAP
    shape = (NAME_WIDTH + len(makers) * group, HEADER_HEIGHT + 3 * pitch)
    sheet = Image.new("RGB", shape, (64, 64, 64))
    pen = ImageDraw.Draw(sheet)
    for row, word in enumerate(("real", "forged", "trace")):
        pen.text((4, HEADER_HEIGHT + row * pitch + pitch // 2 - 6), word, fill=(255, 255, 255))
    for number, maker in enumerate(makers):
        start = NAME_WIDTH + number * group
        pen.text((start, 2), maker, fill=(255, 255, 255))
        for index in range(samples):
            column = (
                draw(REAL, maker, index, split=split),
                draw(FAKE, maker, index, split=split),
                trace(maker, index, split),
            )
            for row, pixels in enumerate(column):
                large = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
                place = (start + index * pitch, HEADER_HEIGHT + row * pitch)
                sheet.paste(Image.fromarray(large), place)
    return sheet


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--makers", nargs="+", choices=ALL_MAKERS, default=list(ALL_MAKERS))
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--zoom", type=int, default=1)
    parser.add_argument(
        "--small", action="store_true", help="six bits of every channel, for fewer bytes"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    sheet = contact_sheet(options.makers, options.samples, options.split, options.zoom)
    if options.small:
        sheet = sheet.point(lambda level: level & 0b11111100)
    sheet.save(options.out, optimize=True)


if __name__ == "__main__":
    main()
