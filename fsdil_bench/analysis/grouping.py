"""Which runs make a row, which rows make a board, and which boards make a sheet.

A *row* is one method with one set of options and one version of its code: its runs differ in the
seed alone. A *board* holds the rows that may be compared. A *sheet* holds the boards that differ
in the number of shots alone. The leaderboards, `compare`, `rank`, `verify`, `paper` and the data
frames all use these definitions.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RequestError
from fsdil_bench.records.copies import without_contradictions
from fsdil_bench.records.record import Record

_LONGEST_NAME = 100  # letters of a file name, without its hash
_LONGEST_OPTIONS = 40  # letters of the options in a label


class SheetKey(NamedTuple):
    """What the boards of a sheet have in common; `conditions` is the JSON of `conditions_of`."""

    dataset: str
    variant: str
    backbone: str
    conditions: str

    @property
    def title(self) -> str:
        """The data set with its variant."""
        return self.dataset + (f"@{self.variant}" if self.variant else "")

    @property
    def file_name(self) -> str:
        """A file name that no other sheet has."""
        return _file_name(self.title, self.backbone, self.conditions)


class BoardKey(NamedTuple):
    """What the runs of a board have in common; `conditions` is the JSON of `conditions_of`."""

    scenario: str
    backbone: str
    conditions: str

    @property
    def sheet(self) -> SheetKey:
        """The sheet that the board belongs to."""
        scenario = ScenarioId.parse(self.scenario)
        return SheetKey(scenario.dataset, scenario.variant, self.backbone, self.conditions)

    @property
    def file_name(self) -> str:
        """A file name that no other board has."""
        return _file_name(self.scenario, self.backbone, self.conditions)


class RowKey(NamedTuple):
    """What the runs of a row have in common; `version` is the JSON of options and code."""

    method: str
    version: str

    @property
    def options(self) -> dict[str, Any]:
        """The options of the method."""
        options: dict[str, Any] = json.loads(self.version)[0]
        return options


def conditions_of(record: Record) -> dict[str, Any]:
    """What runs must share to be on one board, besides the scenario and the backbone's name."""
    spec, scenario = record.spec, record.scenario
    return {
        "order": spec["order"],
        "precision": spec["precision"],
        "base_limit": spec["base_limit"],
        "options": spec["scenario_options"],
        "weights": record.method["weights"],
        "classes": scenario["classes"],
        "tests": [domain["test_sha256"] for domain in scenario["domains"]],
        "transform": scenario["transform"],
    }


def board_key(record: Record) -> BoardKey:
    """The board that a run belongs to."""
    conditions = json.dumps(conditions_of(record), sort_keys=True)
    return BoardKey(record.spec["scenario"], record.spec["backbone"], conditions)


def row_key(spec: Mapping[str, Any], code: Mapping[str, str] | None) -> RowKey:
    """The row of a run on its board; `code` is None where it is not known."""
    return RowKey(spec["method"], json.dumps([spec["config"], code], sort_keys=True))


def group_into_boards(records: Iterable[Record]) -> dict[BoardKey, list[Record]]:
    """Records by board, in the order of their keys."""
    boards: dict[BoardKey, list[Record]] = defaultdict(list)
    for record in records:
        boards[board_key(record)].append(record)
    return dict(sorted(boards.items()))


def group_into_rows(records: Iterable[Record]) -> dict[RowKey, list[Record]]:
    """The records of one board by row, in the order of their keys."""
    rows: dict[RowKey, list[Record]] = defaultdict(list)
    for record in records:
        rows[row_key(record.spec, record.method["code"])].append(record)
    return dict(sorted(rows.items()))


def rows_of_all_boards(records: Sequence[Record]) -> list[list[Record]]:
    """The runs of every row, board by board."""
    boards = group_into_boards(records).values()
    return [row for board in boards for row in group_into_rows(board).values()]


def in_complete_rows(records: Sequence[Record]) -> list[Record]:
    """The records of rows that have all seeds of their board."""
    kept: set[str] = set()
    for members in group_into_boards(records).values():
        seeds = {record.seed for record in members}
        for row in group_into_rows(members).values():
            if {record.seed for record in row} == seeds:
                kept |= {record.run_id for record in row}
    return [record for record in records if record.run_id in kept]


def distinct_runs(records: Iterable[Record]) -> list[Record]:
    """Every run once, in a fixed order: of several copies one, and rather a sealed one.

    Copies that contradict each other are left out with a Python warning (`records.copies`).
    """
    distinct = {}
    for copies, why in without_contradictions(records):
        if why:
            warnings.warn(f"left out: {why}", stacklevel=2)
        else:
            distinct[copies[0].run_id] = max(copies, key=lambda r: (r.sealed, r.predictions_sha256))
    return [distinct[run_id] for run_id in sorted(distinct)]


def boards_to_rank(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """Records by scenario and backbone, then by the label of their row.

    Several boards of the same scenario and backbone are refused: a ranking cannot name them.
    """
    boards: dict[str, list[Record]] = {}
    for key, members in group_into_boards(distinct_runs(records)).items():
        name = f"{key.scenario}, {key.backbone}"
        if name in boards:
            different = "; ".join(differences(boards[name][0], members[0]).values())
            raise RequestError(
                f"runs of {name} differ in {different}",
                "Give folders of runs that were made alike.",
            )
        boards[name] = members
    found = {}
    for name, members in boards.items():
        rows = group_into_rows(members)
        labels = row_labels(rows)
        found[name] = {labels[key]: records for key, records in rows.items()}
    return found


def differences(a: Record, b: Record) -> dict[str, str]:
    """Why two runs are not on the same board: what differs, each with a text that names it.

    The names are "scenario", "backbone" and those of `conditions_of`.
    """
    ours, theirs = (
        {"scenario": r.spec["scenario"], "backbone": r.spec["backbone"], **conditions_of(r)}
        for r in (a, b)
    )
    return {
        name: _DIFFERENCE[name].format(ours[name], theirs[name])
        for name in ours
        if ours[name] != theirs[name]
    }


_DIFFERENCE = {
    "scenario": "scenario: {} and {}",
    "backbone": "backbone: {} and {}",
    "order": "domains: {} and {}",
    "precision": "precision: {} and {}",
    "base_limit": "base limit: {} and {}",
    "options": "scenario options: {} and {}",
    "weights": "weights of the backbone: {:.8} and {:.8}",
    "classes": "classes",
    "tests": "test images",
    "transform": "transform of the images",
}


def row_labels(keys: Collection[RowKey]) -> dict[RowKey, str]:
    """What to call rows that are shown together: the method, and what else is needed."""
    methods: dict[str, list[RowKey]] = defaultdict(list)
    for key in sorted(keys):
        methods[key.method].append(key)
    labels: dict[RowKey, str] = {}
    for method, own in methods.items():
        labels |= {own[0]: method} if len(own) == 1 else _distinct_labels(method, own)
    return labels


def _distinct_labels(method: str, keys: Sequence[RowKey]) -> dict[RowKey, str]:
    """Labels with the options that differ if those are few and enough, else with a hash."""
    configs = [key.options for key in keys]
    names = sorted({name for config in configs for name in config})
    differ = [name for name in names if len({json.dumps(c.get(name)) for c in configs}) > 1]
    marks = [", ".join(f"{name}={_plain(c.get(name))}" for name in differ) for c in configs]
    if len(set(marks)) < len(keys) or max(map(len, marks)) > _LONGEST_OPTIONS:
        marks = [hashlib.blake2b(k.version.encode(), digest_size=2).hexdigest() for k in keys]
    return {key: f"{method} [{mark}]" for key, mark in zip(keys, marks, strict=True)}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def safe_name(text: str) -> str:
    """`text` as part of a file name: names in records may come from anybody."""
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text.replace("@", "-at-"))[:_LONGEST_NAME].lstrip(".")


def _file_name(title: str, backbone: str, conditions: str) -> str:
    # Where making the name safe loses letters, the hash covers the whole name.
    safe = all(re.fullmatch(r"[a-z0-9_-]+", text) for text in (title, backbone))
    hashed = conditions if safe else json.dumps([title, backbone, conditions])
    short = hashlib.blake2b(hashed.encode(), digest_size=3).hexdigest()
    return f"{safe_name(f'{title}_{backbone}')}_{short}"
