"""Measured numbers beside the paper's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..errors import FsdilError
from ..scenario import ScenarioId
from .agreement import Case, Verdict, verdict
from .names import LEAD, usual_name
from .results import SEEDS, Reported, tables
from .setting import what_differs

if TYPE_CHECKING:
    from ..plugins import Registry
    from ..record import Record

Config = dict[str, Any] | None


@dataclass(frozen=True)
class Beside:
    """A number of the paper and what was measured for it, if anything was."""

    reported: Reported
    verdict: Verdict
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 0


def beside(records: Sequence[Record], registry: Registry | None = None) -> list[Beside]:
    """Every number of the paper with the records that claim it; one entry for each row of runs.

    The row of differences is left out. `registry` is needed to tell options that were set.
    """
    rows: dict[tuple[str, int, str], list[tuple[list[Record], Config]]] = defaultdict(list)
    for members in _rows(records):
        spec = members[0].spec
        identity = ScenarioId.parse(spec["scenario"])
        place = (identity.dataset, identity.shots, usual_name(spec["method"]))
        rows[place].append((members, _usual_config(members[0], registry)))
    compared = []
    for cell in (cell for table in tables() for cell in table.cells if cell.label != LEAD):
        found = rows.get((cell.dataset, cell.shots, cell.method), [])
        compared += [_compare(cell, *each) for each in found]
        if not found:
            compared.append(Beside(cell, verdict(cell, None)))
    return compared


def in_paper(record: Record) -> bool:
    """Whether a record's data set is one of the paper's."""
    return ScenarioId.parse(record.spec["scenario"]).dataset in SEEDS


def _compare(cell: Reported, members: list[Record], usual: Config) -> Beside:
    from ..statistics import interval

    values = [record.metrics[cell.metric] for record in members]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Beside(cell, Verdict(Case.NOT_COMPARABLE, f"{cell.metric} is undefined"))
    mean, several = fmean(known), len(members) > 1
    found = interval(members, cell.metric) if several else None  # of seeds, not of images alone
    low, high = (found.low, found.high) if found else (None, None)
    why_not = what_differs(members[0], cell, usual)
    answer = verdict(cell, mean, low, high, not why_not, ", ".join(why_not))
    return Beside(cell, answer, mean, low, high, len(members))


def _rows(records: Sequence[Record]) -> list[list[Record]]:
    """Runs that differ in the seed alone, as the leaderboards put them into one row."""
    from ..leaderboards.grouping import group_into_boards
    from ..verification import row_of

    rows: dict[tuple[Any, str], dict[int, Record]] = defaultdict(dict)
    ours = [record for record in records if in_paper(record)]
    for key, members in group_into_boards(ours).items():
        for record in members:
            rows[key, row_of(record)][record.spec["seed"]] = record
    return [[found[seed] for seed in sorted(found)] for found in rows.values()]


def _usual_config(record: Record, registry: Registry | None) -> Config:
    """A method's options on the record's data set when nothing is set; None if it is not here."""
    if registry is None or record.spec["method"] not in registry.methods:
        return None
    from ..config import as_dict, resolve
    from ..job import load_method_class

    info = registry.method(record.spec["method"])
    try:
        kind = load_method_class(info)
        preset = kind.presets.get(ScenarioId.parse(record.spec["scenario"]).dataset, {})
        settings = resolve(kind.Config, preset, info.overrides, owner=info.name, see="")
    except FsdilError:  # an extra is not installed, say
        return None
    return as_dict(settings)
