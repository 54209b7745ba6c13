"""The boards that the package carries, to say where a run stands.

`published.json` beside this module holds what that takes of every board in `leaderboards/`:
`make boards` writes it (`fsdil_bench.report.leaderboards.publish`). It is a convenience: where the
file is missing or broken, there are no published boards.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.records.record import Record

from .grouping import board_key

FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published board: `mean` is AA* in percent over `seeds` runs, of which `sealed`
    were sealed. `label` also says which options differ, where a method has several rows."""

    method: str
    label: str
    mean: float
    seeds: int
    sealed: int
    exemplar_free: bool


def published_rows(records: Sequence[Record]) -> list[PublishedRow]:
    """The rows of the published board that all `records` belong to, the best first; none where no
    board fits."""
    boards = {board_key(record).file_name for record in records}
    if len(boards) != 1:
        return []
    try:
        found = json.loads(FILE.read_text(encoding="utf-8"))["boards"].get(*boards, [])
        rows = [PublishedRow(**row | {"mean": float(row["mean"])}) for row in found]
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return []
    return sorted(rows, key=lambda row: (-row.mean, row.label))
