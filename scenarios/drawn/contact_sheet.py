"""A contact sheet of the drawn world, to see what it looks like.

python -m fsdil_scenarios.drawn.contact_sheet --domain real --out sheet.png

`--domain all` shows the two styles of `@validation` too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..contact_sheets import contact_sheet
from .world import ALL_STYLES, CLASSES, draw


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", choices=(*ALL_STYLES, "all"), default="all")
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=CLASSES, metavar="CLASS")
    parser.add_argument("--samples", type=int, default=None, help="pictures per class and domain")
    parser.add_argument("--split", default="train")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    domains = tuple(ALL_STYLES) if options.domain == "all" else (options.domain,)
    samples = options.samples or (3 if options.domain == "all" else 10)

    def picture(row: int, group: int, index: int) -> np.ndarray:
        name, domain = options.classes[row], domains[group]
        return draw(name, domain, index, split=options.split, size=options.size)

    groups = [(domain, samples) for domain in domains]
    contact_sheet(options.classes, groups, picture, options.size).save(options.out)


if __name__ == "__main__":
    main()
