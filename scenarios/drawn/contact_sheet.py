"""A contact sheet of the drawn world, to see what it looks like.

python -m fsdil_scenarios.drawn.contact_sheet --domain real --out sheet.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from .world import CLASSES, DOMAINS, draw

NAME_WIDTH = 72
HEADER_HEIGHT = 16
GAP = 2


def contact_sheet(
    domains: Sequence[str], classes: Sequence[str], samples: int, split: str, size: int
) -> Image.Image:
    """A row for every class, a group of `samples` columns for every domain."""
    pitch = size + GAP
    group = samples * pitch + 3 * GAP
    shape = (NAME_WIDTH + len(domains) * group, HEADER_HEIGHT + len(classes) * pitch)
    sheet = Image.new("RGB", shape, (128, 128, 128))
    pen = ImageDraw.Draw(sheet)
    for row, class_name in enumerate(classes):
        top = HEADER_HEIGHT + row * pitch
        pen.text((4, top + size // 2 - 6), class_name, fill=(255, 255, 255))
        for column, domain in enumerate(domains):
            left = NAME_WIDTH + column * group
            pen.text((left, 2), domain, fill=(255, 255, 255))
            for index in range(samples):
                picture = Image.fromarray(draw(class_name, domain, index, split=split, size=size))
                sheet.paste(picture, (left + index * pitch, top))
    return sheet


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", choices=(*DOMAINS, "all"), default="all")
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=CLASSES, metavar="CLASS")
    parser.add_argument("--samples", type=int, default=None, help="pictures per class and domain")
    parser.add_argument("--split", default="train")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    domains = DOMAINS if options.domain == "all" else (options.domain,)
    samples = options.samples or (3 if options.domain == "all" else 10)
    contact_sheet(domains, options.classes, samples, options.split, options.size).save(options.out)


if __name__ == "__main__":
    main()
