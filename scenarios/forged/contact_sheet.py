"""A contact sheet of the forged world: real pictures above, forged ones below, then their traces.

    python -m fsdil_scenarios.forged.contact_sheet --out sheet.png

The third row of a maker is what forging changed, three times as strong, around grey.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from .traces import SIZE, as_bytes
from .world import ALL_MAKERS, FAKE, REAL, before_forging, draw

NAME_WIDTH = 64
GAP = 2
GAIN = 3


def trace(maker: str, index: int, split: str) -> np.ndarray:
    """What forging changed, around grey."""
    before = before_forging(maker, index, split=split).astype(np.float32)
    return as_bytes(128 + GAIN * (draw(FAKE, maker, index, split=split) - before))


def contact_sheet(makers: Sequence[str], samples: int, split: str, zoom: int) -> Image.Image:
    """Three rows for every maker, a column for every sample."""
    pitch = SIZE * zoom + GAP
    block = 3 * pitch + 3 * GAP
    sheet = Image.new("RGB", (NAME_WIDTH + samples * pitch, len(makers) * block), (64, 64, 64))
    pen = ImageDraw.Draw(sheet)
    for number, maker in enumerate(makers):
        top = number * block
        pen.text((4, top + 4), maker, fill=(255, 255, 255))
        for row, word in enumerate(("real", "forged", "trace")):
            pen.text((4, top + row * pitch + pitch // 2), word, fill=(200, 200, 200))
        for index in range(samples):
            column = (
                draw(REAL, maker, index, split=split),
                draw(FAKE, maker, index, split=split),
                trace(maker, index, split),
            )
            for row, pixels in enumerate(column):
                picture = Image.fromarray(pixels)
                large = picture.resize((SIZE * zoom, SIZE * zoom), Image.Resampling.NEAREST)
                sheet.paste(large, (NAME_WIDTH + index * pitch, top + row * pitch))
    return sheet


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--makers", nargs="+", choices=ALL_MAKERS, default=list(ALL_MAKERS))
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--zoom", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    contact_sheet(options.makers, options.samples, options.split, options.zoom).save(options.out)


if __name__ == "__main__":
    main()
