"""Boards with their rows, and sheets of boards, made from records.

What belongs on a board and into a row is defined in `grouping`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RecordError
from fsdil_bench.records.record import Record, find_records
from fsdil_bench.shown import Part, Shown

from .board_summary import line_of, parts_of
from .evidence import differing_copies
from .grouping import (
    BoardKey,
    RowKey,
    SheetKey,
    distinct_runs,
    group_into_boards,
    group_into_rows,
    row_key,
    row_labels,
)
from .rows import Row
from .scores import scores_of_rows, standings_of_rows
from .statistics import Standing
from .unfinished import Unfinished, find_unfinished


@dataclass(frozen=True, repr=False)
class Board(Shown):
    """Rows that may be compared, the best AA* first; those for development come last.

    `standing` says for every metric which rows (by label) are worse than another, and which
    difference the board could have seen.
    """

    key: BoardKey
    rows: tuple[Row, ...]
    standing: Mapping[str, Standing[str]] = field(default_factory=dict, repr=False)

    def _shown_parts(self) -> Sequence[Part]:
        """What a notebook and `print` show."""
        return list(parts_of(self))

    def _shown_line(self) -> str:
        """The same in one line."""
        return line_of(self)

    @property
    def shots(self) -> int:
        """Images per class in every domain but the first."""
        return ScenarioId.parse(self.key.scenario).shots

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.key.file_name

    @property
    def records(self) -> list[Record]:
        """The finished runs of all rows."""
        return [record for row in self.rows for record in row.records]

    @property
    def unfinished(self) -> list[Unfinished]:
        """The unfinished runs of all rows."""
        return [run for row in self.rows for run in row.unfinished]

    @property
    def seeds(self) -> list[int]:
        """The seeds of all runs, finished or not."""
        return _seeds(self.records, self.unfinished)


class Boards(Shown, tuple[Board, ...]):
    """Several boards; a notebook shows one below the other."""

    def _shown_parts(self) -> Sequence[Part]:
        """What a notebook and `print` show."""
        return [part for board in self for part in board._shown_parts()] or ["no boards"]

    def _shown_line(self) -> str:
        """The same in one line."""
        return f"Boards: {', '.join(map(repr, self)) or 'none'}"


@dataclass(frozen=True)
class Sheet:
    """Boards that differ in the number of shots alone, the fewest shots first."""

    key: SheetKey
    boards: tuple[Board, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.key.file_name

    @property
    def first(self) -> Record:
        """A record that says what all of them have in common."""
        return self.boards[0].records[0]

    @property
    def shots(self) -> list[int]:
        """The number of shots of each board."""
        return [board.shots for board in self.boards]

    @property
    def rows(self) -> list[Row]:
        """The rows of all boards."""
        return [row for board in self.boards for row in board.rows]

    def rows_by_label(self) -> dict[str, dict[int, Row]]:
        """Each method's rows by shots. The method with the most boards comes first, then by AA*;
        those with a row for development come last."""
        found: dict[str, dict[int, Row]] = {}
        for board in self.boards:
            for row in board.rows:
                found.setdefault(row.label, {})[board.shots] = row
        return dict(sorted(found.items(), key=lambda item: (self._rank(item[1]), item[0])))

    def _rank(self, own: Mapping[int, Row]) -> tuple[bool, int, float]:
        """Sums of AA* are compared only between methods with as many boards."""
        means = [mean for row in own.values() if (mean := row.scores["AA*"].mean) is not None]
        development = any(row.for_development for row in own.values())
        return development, len(self.boards) - len(means), -round(sum(means), 6)


def load_boards(*runs: str | Path | Record, strict: bool = False) -> Boards:
    """The boards of runs: `runs` are records, and folders below which there are runs.

    Runs belong to one board where they may be compared, and to one row where they differ in the
    seed alone. Unfinished runs of folders are shown as such. Damaged records are left out with a
    warning, or refused with `strict`.
    """
    folders = [each for each in runs if not isinstance(each, Record)]
    records = [each for each in runs if isinstance(each, Record)]
    records += find_records(*folders, strict=strict) if folders else []
    if not records:
        where = ", ".join(map(str, folders)) or "no folder"
        raise RecordError(f"there is no complete run below {where}", "Give a folder that has runs.")
    sheets = make_sheets(records, find_unfinished(*folders))
    return Boards(board for sheet in sheets for board in sheet.boards)


def make_sheets(records: Sequence[Record], unfinished: Sequence[Unfinished] = ()) -> list[Sheet]:
    """All boards, in sheets. A run that is there twice counts once."""
    differing = differing_copies(records)
    distinct = distinct_runs(records)
    finished = {record.run_id for record in distinct}
    unfinished = [run for run in unfinished if run.run_id not in finished]
    sheets: dict[SheetKey, dict[BoardKey, _Runs]] = defaultdict(dict)
    for key, members in group_into_boards(distinct).items():
        own = [run for run in unfinished if _belongs(run, members[0])]
        sheets[key.sheet][key] = _runs_by_row(members, own)
    return [_make_sheet(key, boards, differing) for key, boards in sorted(sheets.items())]


#: The finished and unfinished runs of each row of a board.
_Runs = dict[RowKey, tuple[list[Record], list[Unfinished]]]


def _belongs(run: Unfinished, record: Record) -> bool:
    """Whether an unfinished run would be on the board of a record, as far as its spec tells."""
    known = ("scenario", "backbone", "order", "precision", "base_limit", "scenario_options")
    return all(run.spec.get(name) == record.spec[name] for name in known)


def _runs_by_row(records: Sequence[Record], unfinished: Sequence[Unfinished]) -> _Runs:
    rows: _Runs = {key: (own, []) for key, own in group_into_rows(records).items()}
    for run in unfinished:
        # The code of an unfinished run is not known: the first row with its options takes it.
        key = row_key(run.spec, None)
        alike = [k for k, (own, _) in rows.items() if own and row_key(own[0].spec, None) == key]
        rows.setdefault(min(alike, default=key), ([], []))[1].append(run)
    return dict(sorted(rows.items()))


def _make_sheet(
    key: SheetKey, boards: Mapping[BoardKey, _Runs], differing: Mapping[str, str]
) -> Sheet:
    labels = row_labels({row for runs in boards.values() for row in runs})
    made = [_make_board(board, runs, labels, differing) for board, runs in boards.items()]
    return Sheet(key, tuple(sorted(made, key=lambda board: board.shots)))


def _make_board(
    key: BoardKey, runs: _Runs, labels: Mapping[RowKey, str], differing: Mapping[str, str]
) -> Board:
    standings = standings_of_rows({row: records for row, (records, _) in runs.items()})
    by_label = {
        metric: Standing(
            {labels[row]: verdict for row, verdict in found.verdicts.items()},
            found.smallest_difference,
        )
        for metric, found in standings.items()
    }
    return Board(key, _make_rows(runs, labels, differing, standings), by_label)


def _make_rows(
    runs: _Runs,
    labels: Mapping[RowKey, str],
    differing: Mapping[str, str],
    standings: Mapping[str, Standing[RowKey]],
) -> tuple[Row, ...]:
    scores = scores_of_rows({key: records for key, (records, _) in runs.items()}, standings)
    seeds = _seeds(
        [record for records, _ in runs.values() for record in records],
        [run for _, unfinished in runs.values() for run in unfinished],
    )
    rows = []
    for key, (records, unfinished) in runs.items():
        finished = {record.seed for record in records}
        missing = tuple(seed for seed in seeds if seed not in finished)
        twice = tuple(differing[r.run_id] for r in records if r.run_id in differing)
        row = Row(key, labels[key], tuple(records), tuple(unfinished), missing, scores[key], twice)
        rows.append(row)
    rows.sort(key=_place)
    return tuple(rows)


def _place(row: Row) -> tuple[bool, float, str]:
    # Rounded, so that noise in the last bit never decides about the order.
    return row.for_development, -round(row.scores["AA*"].mean or -1.0, 8), row.label


def _seeds(records: Sequence[Record], unfinished: Sequence[Unfinished]) -> list[int]:
    return sorted({r.seed for r in records} | {run.spec["seed"] for run in unfinished})
