"""Scores over the number of shots: a line for each method of a sheet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RequestError
from fsdil_bench.records.record import Record

from .grouping import RowKey, SheetKey, board_key, distinct_runs, row_key, row_labels

#: The runs of a row by shots.
RunsByShots = dict[int, list[Record]]


def runs_by_shots(records: Sequence[Record]) -> tuple[SheetKey, dict[str, RunsByShots]]:
    """The sheet of the runs, and for each label on it the runs by shots, the fewest shots first.

    Runs of several sheets are refused: their shots are not points of one line.
    """
    rows: dict[RowKey, RunsByShots] = defaultdict(dict)
    sheets = set()
    for record in distinct_runs(records):
        sheets.add(board_key(record).sheet)
        own = rows[row_key(record.spec, record.method["code"])]
        own.setdefault(ScenarioId.parse(record.spec["scenario"]).shots, []).append(record)
    if len(sheets) != 1:
        titles = ", ".join(sorted({f"{sheet.title} with {sheet.backbone}" for sheet in sheets}))
        raise RequestError(
            f"the runs are of {len(sheets)} boards besides their shots ({titles})",
            "Give folders whose runs differ in method, seed and shots alone.",
        )
    labels = row_labels(rows)
    found = {labels[key]: dict(sorted(own.items())) for key, own in rows.items()}
    return sheets.pop(), dict(sorted(found.items()))
