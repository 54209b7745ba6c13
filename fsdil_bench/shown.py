"""How results look where a value is shown by itself: as HTML in a notebook, else as plain text.

A class that inherits `Shown` says with `_shown_parts` what there is to see, lines and tables, and
with `_shown_line` how it is called in one line. Names come from plugins and from records of others,
so all text is escaped, and loses its control characters. Colours are transparent and text keeps its
own colour: notebooks are light or dark.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TABLE = "border-collapse:collapse;margin:0.4em 0;font-variant-numeric:tabular-nums"
_CELL = (
    "padding:0.15em 0.7em;border:0;border-bottom:1px solid rgba(128,128,128,0.35);"
    "white-space:nowrap"
)
#: The colour of a share; blue stays readable below black and below white letters.
_BLUE = "40,120,200"


@dataclass(frozen=True)
class Cell:
    """A cell of a table. `share`, from 0 to 1, colours it; `strong` makes it bold."""

    text: str
    share: float | None = None
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """Rows below their headings. The first cell of a row is a name, all others are numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]


@dataclass(frozen=True)
class Title:
    """The line above everything else."""

    text: str


@dataclass(frozen=True)
class Strong:
    """What it means that cells are strong."""

    meaning: str


#: What a value is shown as; a string is a plain line.
Part = str | Title | Table | Strong


class Shown:
    """A value that shows itself."""

    def _shown_parts(self) -> Sequence[Part]:
        """What there is to see, from top to bottom."""
        raise NotImplementedError

    def _shown_line(self) -> str:
        """The same in one line, for lists and debuggers."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{_one_line(self._shown_line())}>"

    def __str__(self) -> str:
        return as_text(self._shown_parts())

    def _repr_html_(self) -> str:
        return as_html(self._shown_parts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython takes `repr`, which is one line, unless this stands beside it in a class.
        printer.text("..." if cycle else str(self))


def as_html(parts: Sequence[Part]) -> str:
    """Lines and tables as HTML without scripts, classes and style sheets."""
    return f"<div>{''.join(map(_html_part, parts))}</div>"


def _html_part(part: Part) -> str:
    if isinstance(part, Title):
        return f"<div><strong>{_escaped(part.text)}</strong></div>"
    if isinstance(part, Strong):
        part = f"bold: {part.meaning}"
    if isinstance(part, str):
        return f'<div style="font-size:0.9em;opacity:0.85">{_escaped(part)}</div>'
    head = "".join(_html_cell("th", name, i) for i, name in enumerate(part.headings))
    rows = "".join(
        f'<tr style="background:transparent">'
        f"{''.join(_html_cell('td', cell, i) for i, cell in enumerate(row))}</tr>"
        for row in part.rows
    )
    return (
        f'<table style="{_TABLE}"><thead><tr style="background:transparent">{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _html_cell(tag: str, cell: str | Cell, column: int) -> str:
    cell = _cell(cell)
    style = f"{_CELL};text-align:{'right' if column else 'left'}"
    if cell.share is not None:
        share = min(max(cell.share, 0.0), 1.0)
        style += f";background:rgba({_BLUE},{0.05 + 0.45 * share:.2f})"
    text = _escaped(cell.text)
    return f'<{tag} style="{style}">{f"<strong>{text}</strong>" if cell.strong else text}</{tag}>'


def _escaped(text: str) -> str:
    return html.escape(_one_line(text))


def as_text(parts: Sequence[Part]) -> str:
    """The same as plain text, with an empty line before and after each table."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Table):
            lines += ["", *_text_table(part), ""]
        elif isinstance(part, Strong):
            lines.append(f"*...*: {_one_line(part.meaning)}")
        else:
            lines.append(_one_line(part.text if isinstance(part, Title) else part))
    # Between two tables one empty line is enough.
    return "\n".join(lines).strip("\n").replace("\n\n\n", "\n\n")


def _text_table(table: Table) -> list[str]:
    rows = [[_marked(_cell(cell)) for cell in row] for row in (table.headings, *table.rows)]
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_aligned, row, widths, range(len(row)))).rstrip() for row in rows]
    return [lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]]


def _marked(cell: Cell) -> str:
    text = _one_line(cell.text)
    return f"*{text}*" if cell.strong else text


def _aligned(text: str, width: int, column: int) -> str:
    blank = " " * (width - _width(text))
    return blank + text if column else text + blank


def _width(text: str) -> int:
    """Columns of a terminal: letters of East Asia take two."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _one_line(text: str) -> str:
    """Without control characters, which could end a line or talk to a terminal."""
    bad = ("Cc", "Cf", "Zl", "Zp")
    return "".join(" " if unicodedata.category(letter) in bad else letter for letter in text)
