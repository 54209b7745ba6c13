"""Measured numbers beside those that the paper reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .. import paper
from ..paper.names import usual_name
from .commands import typed_settings
from .grouping import Sheet
from .rows import Row


@dataclass(frozen=True)
class Comparison:
    """A reported number and what was measured for it, if anything was.

    `case` is the verdict in short: reproduced, not reproduced, not run, not comparable; `verdict`
    adds why. `label` is the row's on the sheet of that name, or the paper's spelling.
    """

    dataset: str
    shots: int
    metric: str
    method: str
    label: str
    sheet: str
    reported: str
    measured: float | None
    std: float | None
    difference: float | None
    case: str
    verdict: str


def compare_with_paper(
    sheets: Sequence[tuple[Sheet, Mapping[int, Sequence[Row]]]],
) -> list[Comparison]:
    """Every number of the paper's tables, once for each row that measured it."""
    found = []
    for number in _numbers():
        rows = [
            (sheet, row)
            for sheet, boards in sheets
            if sheet.dataset == number.dataset
            for row in boards.get(number.shots, ())
            if usual_name(row.method) == number.method and row.records
        ]
        found += [_compare(number, sheet, row) for sheet, row in rows] or [_not_run(number)]
    return found


def _numbers() -> Iterator[paper.Reported]:
    """The tables' numbers; those that a later table repeats count once."""
    seen = set()
    for table in paper.tables():
        for cell in table.cells:
            what = (cell.dataset, cell.shots, cell.method, cell.metric)
            if cell.method and cell.mean is not None and what not in seen:
                seen.add(what)
                yield cell


def _compare(number: paper.Reported, sheet: Sheet, row: Row) -> Comparison:
    mean, std = row.scores[number.metric]
    standing = row.standings.get(number.metric)
    # CVLC's modes both claim the number.
    options = [each for each in typed_settings(row.records[0]) if not each.startswith("mode=")]
    differs = [*paper.what_differs(row.records[0], number), *(f"option {o}" for o in options)]
    # With one seed the interval covers the test images only, which says nothing about a mean over
    # several seeds.
    sure = standing if standing and len(row.records) > 1 else None
    verdict = paper.verdict(
        number, mean, sure.low if sure else None, sure.high if sure else None,
        comparable=not differs, why_not="; ".join(differs),
    )  # fmt: skip
    return Comparison(
        number.dataset, number.shots, number.metric, number.method, row.label, sheet.name,
        str(number), mean, std, verdict.difference, str(verdict.case), str(verdict),
    )  # fmt: skip


def _not_run(number: paper.Reported) -> Comparison:
    verdict = paper.verdict(number, None)
    return Comparison(
        number.dataset, number.shots, number.metric, number.method, number.label, "",
        str(number), None, None, None, str(verdict.case), str(verdict),
    )  # fmt: skip
