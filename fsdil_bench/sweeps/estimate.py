"""What the runs of a sweep will cost: by the records of earlier ones, else by a forecast.

Records of the same method on the same data set count; those with the same number of shots if there
are any, else those with other numbers. They were measured, so they are better than a forecast
(`fsdil_bench.forecast`), which needs none, and neither images nor weights.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import FsdilError, RecordError, RequestError
from fsdil_bench.records.record import RECORD_FILE, Record

from .plan import Cell, Plan
from .request import SweepRun
from .states import RunState, state_of

if TYPE_CHECKING:
    from fsdil_bench.forecast.account import Charge
    from fsdil_bench.forecast.forecaster import Forecaster
    from fsdil_bench.runs.request import RunRequest


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
    """What is on disk of a cell, and the seconds it still takes (None: unknown).

    `by` says how they are known: by "records" or by a "forecast". Only a forecast has a `charge`.
    """

    cell: Cell
    state: RunState
    seconds: float | None
    by: str = ""
    charge: Charge | None = None

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
            "by": self.by,
            **charge_dict(self.charge),
        }


@dataclass(frozen=True)
class Missing:
    """A run that cannot be made here, and what it would take where images and weights are."""

    run: SweepRun
    seconds: float | None
    charge: Charge | None = None


class Forecasts:
    """Forecasts of the runs of a sweep; what cannot be rehearsed is noted once."""

    def __init__(self, forecaster: Forecaster) -> None:
        from fsdil_bench.forecast.account import Account

        self.forecaster = forecaster
        self.problems: list[str] = []
        self.article = ""
        self._account = Account()

    def charge(self, request: RunRequest) -> Charge | None:
        """What a run costs after those that were asked for before; None if nobody can tell."""
        try:
            run = self.forecaster.forecast(request)
        except FsdilError as error:
            if error.message not in self.problems:
                self.problems.append(error.message)
            return None
        self.article = run.speed.article
        return self._account.charge(run)


def forecast(
    plan: Plan, costs: Costs, forecasts: Forecasts | None = None
) -> tuple[list[Forecast], list[Missing]]:
    """All cells of a plan with the cost of what they lack, and the runs that it leaves out."""
    rows = []
    for cell in plan.cells:
        state = state_of(cell.folder)
        row = Forecast(cell, state, costs.seconds(cell.request.method, cell.request.scenario))
        if row.seconds is not None:
            row = replace(row, by="records")
        elif row.open and forecasts is not None:
            # As it was asked for: what is usual here may not be usual there.
            charge = forecasts.charge(replace(cell.request, precision=cell.asked_precision))
            if charge is not None:
                row = replace(row, seconds=charge.seconds, by="forecast", charge=charge)
        lacking = 1 - state.domains / cell.domains if cell.domains else 1.0
        if row.seconds is not None:
            row = replace(row, seconds=row.seconds * lacking)
        rows.append(row)
    missing = []
    for run, _ in plan.blocked:
        charge = forecasts.charge(run.request) if forecasts is not None else None
        missing.append(Missing(run, charge.seconds if charge else None, charge))
    return rows, missing


def charge_dict(charge: Charge | None) -> dict[str, Any]:
    """What a forecast says besides seconds, as plain JSON types."""
    if charge is None:
        return {}
    return {
        "flops": round(charge.flops),
        "images_forward": round(charge.images),
        "images_backward": round(charge.images_trained),
        "peak_memory_bytes": round(charge.memory),
    }


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
