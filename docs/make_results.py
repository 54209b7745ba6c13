"""Write docs/results.md and its pictures from leaderboards/leaderboards.json and its records.

    python docs/make_results.py

The page answers a few questions for a reader with five minutes. Its tables and its sentences with
numbers follow from the records by rule; what is not there yet is left out.
`tests/test_results.py` fails when the page is not what this script writes.
"""

from __future__ import annotations

from pathlib import Path

from results_page.boards import read_worlds
from results_page.pictures import PICTURES, draw
from results_page.sections import page

PAGE = Path(__file__).with_name("results.md")


def main() -> None:
    """Write the page and its pictures, and remove pictures that the page does not show."""
    worlds = read_worlds()
    kept = {file.name for world in worlds for file in draw(world)}
    for file in PICTURES.glob("results-*"):
        if file.name not in kept:
            file.unlink()
    PAGE.write_text(page(worlds), encoding="utf-8")


if __name__ == "__main__":
    main()
