"""What runs will cost, from the records of earlier ones: the same method on the same data set.

Runs with the same number of shots count if there are any, else those with other numbers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RecordError, RequestError
from fsdil_bench.records.record import RECORD_FILE, Record

from .plan import Cell, Plan
from .states import RunState, state_of


class Costs:
    """Seconds that runs took."""

    def __init__(self) -> None:
        self._exact: dict[tuple[str, ScenarioId], list[float]] = defaultdict(list)
        self._alike: dict[tuple[str, str], list[float]] = defaultdict(list)

    @classmethod
    def of_records(cls, folders: Iterable[Path]) -> Costs:
        """What the complete runs below the folders took; unreadable records are skipped."""
        costs = cls()
        for folder in folders:
            for path in sorted(folder.rglob(RECORD_FILE)):
                with suppress(RecordError, RequestError, KeyError, TypeError, AttributeError):
                    record = Record.load(path.parent)
                    seconds = sum(record.cost["seconds"].values())
                    scenario = ScenarioId.parse(record.spec["scenario"])
                    costs.add(record.spec["method"], scenario, seconds)
        return costs

    def add(self, method: str, scenario: ScenarioId, seconds: float) -> None:
        """A run of `method` on `scenario` took so long."""
        self._exact[method, scenario].append(seconds)
        self._alike[method, scenario.dataset].append(seconds)

    def seconds(self, method: str, scenario: ScenarioId) -> float | None:
        """What another such run will take; None where nothing is known."""
        known = self._exact.get((method, scenario))
        if not known:
            known = self._alike.get((method, scenario.dataset))
        return statistics.median(known) if known else None


@dataclass(frozen=True)
class Forecast:
    """What is on disk of a cell, and the seconds it still takes (None: unknown)."""

    cell: Cell
    state: RunState
    seconds: float | None

    @property
    def open(self) -> bool:
        """Whether a sweep would run it."""
        return self.state.name not in ("done", "other version")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        state = self.state
        return self.cell.to_dict() | {
            "state": state.name,
            "domains": state.domains,
            "why": state.why,
            "seconds": self.seconds if self.open else 0,
        }


def forecast(plan: Plan, costs: Costs) -> list[Forecast]:
    """All cells of a plan, with the cost of what they lack."""
    rows = []
    for cell in plan.cells:
        state = state_of(cell.folder)
        whole = costs.seconds(cell.request.method, cell.request.scenario)
        lacking = 1 - state.domains / cell.domains if cell.domains else 1.0
        rows.append(Forecast(cell, state, None if whole is None else whole * lacking))
    return rows


def say_seconds(seconds: float | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, hours = round(seconds / 60), seconds / 3600
    if hours < 1:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if hours < 48 else f"{hours / 24:.1f} days"
