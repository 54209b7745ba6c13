"""Measured numbers beside those that the paper reports, each with its place on the boards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.paper.agreement import Verdict
from fsdil_bench.analysis.paper.reproduction import Reproduction, reproductions
from fsdil_bench.analysis.paper.results import Reported
from fsdil_bench.analysis.rows import Row
from fsdil_bench.plugins.registry import Registry


@dataclass(frozen=True)
class PaperLine:
    """A reported number and what was measured for it, if anything was.

    `label` is the label of the row on the sheet with the name `sheet`; where
    nothing was measured it is the paper's spelling.
    """

    dataset: str
    shots: int
    metric: str
    method: str
    label: str
    sheet: str
    reported: Reported
    measured: float | None
    std: float | None
    verdict: Verdict


def make_paper_lines(sheets: Sequence[Sheet], registry: Registry | None = None) -> list[PaperLine]:
    """Every number of the paper's tables, once for each row that measured it."""
    places = {
        row.records[0].run_id: (sheet, row) for sheet in sheets for row in sheet.rows if row.records
    }
    found = reproductions([row.records for _, row in places.values()], registry)
    return [
        _measured(each, *places[each.records[0].run_id]) if each.records else _not_run(each)
        for each in _once(found)
    ]


def _once(found: Iterable[Reproduction]) -> Iterator[Reproduction]:
    """Without dashes, and without numbers that a later table repeats."""
    tables: dict[tuple[str, int, str, str], str] = {}
    for each in found:
        cell = each.reported
        what = (cell.dataset, cell.shots, cell.method, cell.metric)
        if cell.mean is not None and tables.setdefault(what, cell.table) == cell.table:
            yield each


def _measured(each: Reproduction, sheet: Sheet, row: Row) -> PaperLine:
    number = each.reported
    return PaperLine(
        number.dataset, number.shots, number.metric, number.method, row.label, sheet.name,
        number, each.mean, row.scores[number.metric].std, each.verdict,
    )  # fmt: skip


def _not_run(each: Reproduction) -> PaperLine:
    number = each.reported
    return PaperLine(
        number.dataset, number.shots, number.metric, number.method, number.label, "",
        number, None, None, each.verdict,
    )  # fmt: skip
