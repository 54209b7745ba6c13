"""Which records may be compared.

A board holds results on one scenario, domain order, backbone and precision: what does not compare
never shares a table. A sheet holds the boards that differ in the number of shots alone, side by
side, as papers print them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.records.record import Record

from .unfinished import Unfinished

BoardKey = tuple[str, str, str]

_LONGEST_NAME = 100  # of a file, without what makes it unique


@dataclass(frozen=True)
class Board:
    """Results that may be compared, and the runs among them that have none."""

    key: BoardKey
    records: tuple[Record, ...]
    unfinished: tuple[Unfinished, ...] = ()

    @property
    def scenario(self) -> str:
        """The scenario's id."""
        return self.key[0]

    @property
    def backbone(self) -> str:
        """The name of the backbone."""
        return self.key[1]

    @property
    def shots(self) -> int:
        """Images per class in every domain but the first."""
        return ScenarioId.parse(self.scenario).shots

    @property
    def name(self) -> str:
        """A file name, unique for what sets the board apart."""
        return _file_name(self.scenario, self.backbone, self.key[2])

    @property
    def seeds(self) -> list[int]:
        """The seeds that any method of the board was run with, finished or not."""
        specs = [record.spec for record in self.records] + [run.spec for run in self.unfinished]
        return sorted({spec["seed"] for spec in specs})


@dataclass(frozen=True)
class Sheet:
    """Boards that differ in the number of shots alone, fewest shots first."""

    dataset: str
    variant: str
    backbone: str
    apart: str
    boards: tuple[Board, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """A file name, unique for what sets the sheet apart."""
        return _file_name(self.title, self.backbone, self.apart)

    @property
    def title(self) -> str:
        """The data set with its variant."""
        return self.dataset + (f"@{self.variant}" if self.variant else "")

    @property
    def first(self) -> Record:
        """A record that says what all of them have in common."""
        return self.boards[0].records[0]

    @property
    def domains(self) -> list[str]:
        """The names of the domains, in the order of the stream."""
        return [domain["name"] for domain in self.first.scenario["domains"]]


def make_sheets(records: Sequence[Record], unfinished: Sequence[Unfinished] = ()) -> list[Sheet]:
    """All boards, in sheets; a run that is there twice counts once."""
    kept = _one_per_run(records)
    done = {record.run_id for record in kept}
    waiting = [run for run in unfinished if run.run_id not in done]
    sheets: dict[tuple[str, str, str, str], list[Board]] = defaultdict(list)
    for key, members in sorted(group_into_boards(kept).items()):
        begun = tuple(run for run in waiting if _belongs(run, members[0]))
        scenario = ScenarioId.parse(key[0])
        place = (scenario.dataset, scenario.variant, key[1], key[2])
        sheets[place].append(Board(key, tuple(members), begun))
    return [
        Sheet(*place, tuple(sorted(boards, key=lambda board: board.shots)))
        for place, boards in sorted(sheets.items())
    ]


def group_into_boards(records: Iterable[Record]) -> dict[BoardKey, list[Record]]:
    """Records that may be compared, under (scenario, backbone, what else sets them apart)."""
    boards: dict[BoardKey, list[Record]] = defaultdict(list)
    for record in records:
        spec = record.spec
        apart = {
            "order": spec["order"],
            "precision": spec["precision"],
            "base_limit": spec["base_limit"],
            "options": spec["scenario_options"],
            "weights": record.method["weights"],
            "classes": record.scenario["classes"],
            "tests": [domain["test_sha256"] for domain in record.scenario["domains"]],
            "transform": record.scenario["transform"],
        }
        key = (spec["scenario"], spec["backbone"], json.dumps(apart, sort_keys=True))
        boards[key].append(record)
    return boards


def safe_name(text: str) -> str:
    """`text` as part of a file name: records come from strangers, and so do the names in them."""
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text.replace("@", "-at-"))[:_LONGEST_NAME].lstrip(".")


def _file_name(title: str, backbone: str, apart: str) -> str:
    # What is lost in making the name safe is told apart by the hash.
    safe = all(re.fullmatch(r"[a-z0-9_-]+", text) for text in (title, backbone))
    told = apart if safe else json.dumps([title, backbone, apart])
    short = hashlib.blake2b(told.encode(), digest_size=3).hexdigest()
    return f"{safe_name(f'{title}_{backbone}')}_{short}"


def _one_per_run(records: Sequence[Record]) -> list[Record]:
    """Copies of the same run (in two folders, say) count once, and of an ordinary and a sealed run
    the sealed one; a fixed order fixes every sum."""
    distinct = {record.run_id: record for record in sorted(records, key=lambda r: r.sealed)}
    return [distinct[run_id] for run_id in sorted(distinct)]


def _belongs(run: Unfinished, record: Record) -> bool:
    """Whether an unfinished run would have come onto the board of a record, as far as is known."""
    known = ("scenario", "backbone", "order", "precision", "base_limit", "scenario_options")
    spec: dict[str, Any] = record.spec
    return all(run.spec.get(name) == spec[name] for name in known)
