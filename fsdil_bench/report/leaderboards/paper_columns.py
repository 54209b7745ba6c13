"""Measured numbers beside those that the paper reports, by their place on the boards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.paper.our_runs import Beside, beside
from fsdil_bench.analysis.rows import Row
from fsdil_bench.plugins.registry import Registry


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
    sheets: Sequence[tuple[Sheet, Mapping[int, Sequence[Row]]]], registry: Registry | None = None
) -> list[Comparison]:
    """Every number of the paper's tables, once for each row that measured it."""
    places = {
        row.records[0].run_id: (sheet, row)
        for sheet, boards in sheets
        for members in boards.values()
        for row in members
        if row.records
    }
    compared = beside([row.records for _, row in places.values()], registry)
    return [
        _placed(each, *places[each.records[0].run_id]) if each.records else _not_run(each)
        for each in _once(compared)
    ]


def _once(compared: Iterable[Beside]) -> Iterator[Beside]:
    """Without dashes, and without the numbers of one table that another repeats."""
    tables: dict[tuple[str, int, str, str], str] = {}
    for each in compared:
        cell = each.reported
        what = (cell.dataset, cell.shots, cell.method, cell.metric)
        if cell.mean is not None and tables.setdefault(what, cell.table) == cell.table:
            yield each


def _placed(each: Beside, sheet: Sheet, row: Row) -> Comparison:
    number = each.reported
    return Comparison(
        number.dataset, number.shots, number.metric, number.method, row.label, sheet.name,
        str(number), each.mean, row.scores[number.metric][1], each.verdict.difference,
        str(each.verdict.case), str(each.verdict),
    )  # fmt: skip


def _not_run(each: Beside) -> Comparison:
    number = each.reported
    return Comparison(
        number.dataset, number.shots, number.metric, number.method, number.label, "",
        str(number), None, None, None, str(each.verdict.case), str(each.verdict),
    )  # fmt: skip
