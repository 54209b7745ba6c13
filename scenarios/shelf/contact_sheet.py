"""A contact sheet of the shelf, to see what it looks like.

python -m fsdil_scenarios.shelf.contact_sheet --out sheet.png
python -m fsdil_scenarios.shelf.contact_sheet --session night --kind cup ball --out sheet.png

The first shows all individuals in the base session and one of each kind in the others, the second
frames of videos.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ..contact_sheets import contact_sheet
from .individuals import INDIVIDUALS
from .names import NAMES
from .sessions import DOMAINS, SESSIONS
from .splits import FRAMES
from .things import THINGS
from .world import draw

OF_A_KIND = len(INDIVIDUALS) // len(THINGS)


def overview(size: int) -> Image.Image:
    """A row for every kind: its individuals in the base session, and one of them in the others."""
    base, *others = DOMAINS

    def picture(row: int, group: int, index: int) -> np.ndarray:
        if group == 0:
            return draw(OF_A_KIND * row + index, base, 0, size=size)
        return draw(OF_A_KIND * row + row % OF_A_KIND, others[group - 1], 0, size=size)

    groups = [(f"{base}: all of a kind", OF_A_KIND), *((name, 1) for name in others)]
    return contact_sheet(list(THINGS), groups, picture, size, name_width=60)


def videos(sessions: Sequence[str], kinds: Sequence[str], frames: int, size: int) -> Image.Image:
    """A row for every individual of these kinds: frames of its videos, evenly spread."""
    shown = [who for who, individual in enumerate(INDIVIDUALS) if individual.kind in kinds]

    def picture(row: int, group: int, index: int) -> np.ndarray:
        return draw(shown[row], sessions[group], index * FRAMES // frames, size=size)

    groups = [(session, frames) for session in sessions]
    return contact_sheet([NAMES[who] for who in shown], groups, picture, size, name_width=200)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", nargs="+", choices=tuple(SESSIONS), metavar="SESSION")
    parser.add_argument("--kind", nargs="+", choices=tuple(THINGS), default=tuple(THINGS))
    parser.add_argument("--frames", type=int, default=5, help="frames of each video")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--colours", type=int, help="as few colours, for a small file")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    if options.session:
        sheet = videos(options.session, options.kind, options.frames, options.size)
    else:
        sheet = overview(options.size)
    if options.colours:
        sheet = sheet.quantize(options.colours, Image.Quantize.MAXCOVERAGE, kmeans=3)
    sheet.save(options.out, optimize=True)


if __name__ == "__main__":
    main()
