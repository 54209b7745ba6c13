"""Measured numbers beside the paper's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.options import as_dict
from fsdil_bench.plugins.registry import Registry, load_registry

from .agreement import Case, Verdict, verdict
from .names import LEAD, usual_name
from .results import SEEDS, Reported, tables
from .setting import what_differs

if TYPE_CHECKING:
    from fsdil_bench.records.record import Record

Config = dict[str, Any] | None


@dataclass(frozen=True)
class Beside:
    """A number of the paper and what was measured for it, if anything was: by `records`."""

    reported: Reported
    verdict: Verdict
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    records: tuple[Record, ...] = ()

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len({record.spec["seed"] for record in self.records})


def beside(rows: Iterable[Sequence[Record]], registry: Registry | None = None) -> list[Beside]:
    """Every number of the paper with the rows that claim it; one entry for each.

    A row are runs that differ in the seed alone (`leaderboards.rows.record_rows`). The paper's row
    of differences is left out. `registry` knows which options methods have unless they are set; by
    default it is that of the installed plugins.
    """
    found: dict[tuple[str, int, str], list[tuple[Sequence[Record], Config]]] = defaultdict(list)
    for row in rows:
        if row and in_paper(row[0]):
            registry = registry or load_registry()
            identity = ScenarioId.parse(row[0].spec["scenario"])
            place = (identity.dataset, identity.shots, usual_name(row[0].spec["method"]))
            found[place].append((row, _usual_config(row[0], registry)))
    compared = []
    for cell in (cell for table in tables() for cell in table.cells if cell.label != LEAD):
        own = found.get((cell.dataset, cell.shots, cell.method), [])
        compared += [_compare(cell, *each) for each in own]
        if not own:
            compared.append(Beside(cell, verdict(cell, None)))
    return compared


def in_paper(record: Record) -> bool:
    """Whether a record's data set is one of the paper's."""
    return ScenarioId.parse(record.spec["scenario"]).dataset in SEEDS


def _compare(cell: Reported, row: Sequence[Record], usual: Config) -> Beside:
    from fsdil_bench.analysis.statistics import interval

    values = [record.metrics[cell.metric] for record in row]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        undefined = Verdict(Case.NOT_COMPARABLE, f"{cell.metric} is undefined")
        return Beside(cell, undefined, records=tuple(row))
    mean, several = fmean(known), len({record.spec["seed"] for record in row}) > 1
    # With one seed the interval is over the test images only, which says nothing about a mean over
    # several seeds.
    found = interval(row, cell.metric) if several else None
    low, high = (found.low, found.high) if found else (None, None)
    why_not = what_differs(row[0], cell, usual)
    if usual is None:
        method = row[0].spec["method"]
        why_not.append(f"method {method} is not installed here, so its options cannot be checked")
    answer = verdict(cell, mean, low, high, not why_not, ", ".join(why_not))
    return Beside(cell, answer, mean, low, high, tuple(row))


def _usual_config(record: Record, registry: Registry) -> Config:
    """A method's options on the record's data set when nothing is set; None if it is not here."""
    if record.spec["method"] not in registry.methods:
        return None
    from fsdil_bench.runs.job import method_settings

    dataset = ScenarioId.parse(record.spec["scenario"]).dataset
    try:
        return as_dict(method_settings(registry.method(record.spec["method"]), dataset, {}))
    except FsdilError:  # an extra is not installed, say
        return None
