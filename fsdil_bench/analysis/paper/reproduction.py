"""Which runs measured a number of the paper, and whether they reproduce it."""

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

Options = dict[str, Any] | None


@dataclass(frozen=True)
class Reproduction:
    """A number of the paper, and the mean and interval measured by `records`, if there are any."""

    reported: Reported
    verdict: Verdict
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    records: tuple[Record, ...] = ()

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len({record.seed for record in self.records})


def reproductions(
    rows: Iterable[Sequence[Record]], registry: Registry | None = None
) -> list[Reproduction]:
    """Every number of the paper, once for each row that measured it, or once without a row.

    A row is the runs that differ in the seed alone (`analysis.grouping`). The paper's row of
    differences is left out. `registry` knows the default options of the methods; without it, the
    installed plugins are asked.
    """
    rows_of: dict[tuple[str, int, str], list[tuple[Sequence[Record], Options]]] = defaultdict(list)
    for row in rows:
        if row and in_paper(row[0]):
            registry = registry or load_registry()
            identity = ScenarioId.parse(row[0].spec["scenario"])
            place = (identity.dataset, identity.shots, usual_name(row[0].spec["method"]))
            rows_of[place].append((row, _default_options(row[0], registry)))
    found: list[Reproduction] = []
    for cell in (cell for table in tables() for cell in table.cells if cell.label != LEAD):
        own = rows_of.get((cell.dataset, cell.shots, cell.method), [])
        found += [_judge(cell, *each) for each in own]
        if not own:
            found.append(Reproduction(cell, verdict(cell, None)))
    return found


def in_paper(record: Record) -> bool:
    """Whether a record's data set is one of the paper's."""
    return ScenarioId.parse(record.spec["scenario"]).dataset in SEEDS


def _judge(cell: Reported, row: Sequence[Record], defaults: Options) -> Reproduction:
    from fsdil_bench.analysis.statistics import interval

    values = [record.metrics[cell.metric] for record in row]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        undefined = Verdict(Case.NOT_COMPARABLE, (f"{cell.metric} is undefined",))
        return Reproduction(cell, undefined, records=tuple(row))
    mean, several = fmean(known), len({record.seed for record in row}) > 1
    # With one seed the interval covers the test images only. That says nothing about a mean over
    # several seeds.
    found = interval(row, cell.metric) if several else None
    low, high = (found.low, found.high) if found else (None, None)
    why_not = what_differs(row[0], cell, defaults)
    if defaults is None:
        method = row[0].spec["method"]
        why_not.append(f"method {method} is not installed here, so its options cannot be checked")
    answer = verdict(cell, mean, low, high, why_not)
    return Reproduction(cell, answer, mean, low, high, tuple(row))


def _default_options(record: Record, registry: Registry) -> Options:
    """A method's default options on the record's data set; None if it is not installed."""
    if record.spec["method"] not in registry.methods:
        return None
    from fsdil_bench.runs.job import method_settings

    dataset = ScenarioId.parse(record.spec["scenario"]).dataset
    try:
        return as_dict(method_settings(registry.method(record.spec["method"]), dataset, {}))
    except FsdilError:  # for instance an extra that is not installed
        return None
