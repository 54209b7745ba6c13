"""How docs/results.md writes things: tables, numbers, labels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsdil_bench import Record
from fsdil_bench.records.metrics import mean_and_std
from fsdil_bench.report.leaderboards.formatting import ABSENT, escape_markdown

from .boards import Board


def table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first row has the headings, the first `left` columns have words."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = "|:--" * left + "|--:" * (len(rows[0]) - left) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The table without columns that have nothing but dashes."""
    kept = [i for i in range(len(rows[0])) if any(row[i] != ABSENT for row in rows[1:])]
    return [[row[i] for i in kept] for row in rows]


def marked(board: Board, label: str) -> str:
    """A label as Markdown, with a star where old images are kept."""
    keeps = not all(record.exemplar_free for record in board.rows[label])
    return escape_markdown(label) + (" \\*" if keeps else "")


def marked_somewhere(boards: Sequence[Board], label: str) -> str:
    """A label that one of the boards has."""
    return marked(next(board for board in boards if label in board.rows), label)


def points(board: Board, label: str, metric: str = "AA*") -> str:
    """A score of a row in short."""
    return decimals(board.score(label, metric), 1)


def with_spread(values: Sequence[float | None], *, signs: bool = False) -> str:
    """The mean over seeds with its standard deviation, if there is one."""
    mean, std = mean_and_std(values)
    if mean is None:
        return ABSENT
    return (signed(mean) if signs else f"{mean:.1f}") + (f" ± {std:.1f}" if std is not None else "")


def signed(value: float) -> str:
    """A difference with a sign, unless it rounds to nothing."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def decimals(value: float | None, digits: int = 2) -> str:
    """A number, with a proper minus."""
    return ABSENT if value is None else f"{value:.{digits}f}".replace("-", "−")


def weights_of(record: Record) -> str:
    """The first letters of the hash of a backbone's weights."""
    return re.sub(r"\W", "", str(record.method["weights"]))[:8]


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
