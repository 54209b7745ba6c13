"""What a board shows of itself in a notebook: its rows, marked as on the leaderboards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.summary import score, seconds
from fsdil_bench.shown import Cell, Part, Strong, Table, Title

if TYPE_CHECKING:
    from .boards import Board
    from .rows import Row

_NOTHING = "–"

#: What the marks mean; a board explains those that it has.
_MARKS = {
    "≈": "not distinguishable from the best",
    "?": "undecided: too few runs to tell",
    "°": "a single seed",
    "*": "keeps old images: a ceiling, not a competitor",
    "§": "its state can hold features of single images",
}


def line_of(board: Board) -> str:
    """A board in one line."""
    labels = ", ".join(row.label for row in board.rows)
    return f"Board {board.key.scenario}, {board.key.backbone}: {labels}"


def parts_of(board: Board) -> Iterator[Part]:
    """All that is shown of a board."""
    yield Title(f"{board.key.scenario}, {board.key.backbone}")
    yield "percent, mean ± standard deviation over seeds"
    guesses = any(row.routing is not None for row in board.rows)
    more = ["routing"] if guesses else []
    headings = ["method", *METRICS, *more, "seeds", "learn s", "state KB"]
    rows = [[_label(row), *_scores(row), *_rest(row, guesses)] for row in board.rows]
    yield Table(headings, rows)
    texts = [
        *(mark for row in board.rows for mark in _marks(row)),
        *(cell.text for row in rows for cell in row[1 : 1 + len(METRICS)]),
    ]
    seen = [f"{mark} {what}" for mark, what in _MARKS.items() if any(mark in t for t in texts)]
    if any(cell.strong for row in rows for cell in row):
        yield Strong("the best")
    if seen:
        yield "; ".join(seen)


def _label(row: Row) -> Cell:
    marks = "".join(f" {mark}" for mark in _marks(row))
    doubts = f" ({', '.join(row.doubts)})" if row.doubts else ""
    return Cell(row.label + marks + doubts)


def _marks(row: Row) -> list[str]:
    return [*([] if row.exemplar_free else ["*"]), *(["§"] if row.keeps_features else [])]


def _scores(row: Row) -> list[Cell]:
    if not row.records:
        return [Cell(row.unfinished_states() or _NOTHING), *[Cell(_NOTHING)] * (len(METRICS) - 1)]
    cells = []
    for metric in METRICS:
        found = row.scores[metric]
        text = score(found.mean, found.std)
        if text != _NOTHING:
            text += " ≈" if found.place == "tied" else ""
            text += " ?" if found.verdict == "undecided" else ""
            text += " °" if len(row.records) == 1 else ""
        cells.append(Cell(text, strong=found.place == "best"))
    return cells


def _rest(row: Row, guesses: bool) -> list[Cell]:
    routing = [Cell(score(row.routing))] if guesses else []
    whole = len(row.records) + len(row.missing_seeds)
    seeds = f"{len(row.records)} of {whole}" if row.missing_seeds else str(len(row.records))
    if not row.records:
        return [*routing, Cell(seeds), Cell(_NOTHING), Cell(_NOTHING)]
    cost = row.cost
    return [
        *routing,
        Cell(seeds),
        Cell(seconds(cost.learn_seconds)),
        Cell(f"{cost.state_bytes / 1024:,.0f}"),
    ]
