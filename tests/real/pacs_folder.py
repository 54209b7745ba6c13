"""Where PACS is (real photographs, paintings, cartoons and sketches), and trees of parts of it."""

from __future__ import annotations

import os
from pathlib import Path

ASSETS = os.environ.get("FSDIL_TEST_ASSETS", "")
PACS = Path(ASSETS) / "data" / "pacs"
ORDER = ["photo", "art_painting", "cartoon", "sketch"]
CLASSES = ["dog", "elephant", "giraffe", "guitar", "horse", "house", "person"]


def part_of_pacs(folder, classes, each, domains=ORDER):
    """A tree with some of the classes, and at most so many images of each."""
    for domain in domains:
        for name in classes:
            (folder / domain / name).mkdir(parents=True)
            for file in sorted((PACS / domain / name).iterdir())[:each]:
                (folder / domain / name / file.name).symlink_to(file)
    return folder
