"""What all trackers log, as flat tables of names and numbers.

The names are the same everywhere, and made of characters that every tracker takes: `AA_star` stands
for AA*, and domains have their number before the name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fsdil_bench.analysis.forgetting import forgetting
from fsdil_bench.analysis.statistics.uncertainty import interval
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.runs.finished_domain import FinishedDomain
from fsdil_bench.runs.tracker import TrackedRun

#: A value of every domain: whoever has it logged has the domain logged.
MARK = "seen/mean"
#: A value of every complete run.
FINAL_MARK = "AA_star"


def domain_step(domain: FinishedDomain) -> int:
    """The number of domains learned, which is the axis of all curves."""
    return domain.index + 1


def settings(run: TrackedRun) -> dict[str, str | int | float | bool]:
    """What is run: `method`, `scenario`, `seed`, `config.lr` and so on."""
    return dict(_flat(run.spec))


def environment(run: TrackedRun) -> dict[str, str | int | float | bool]:
    """Where it is run: `environment.device`, `environment.packages.torch` and so on."""
    return dict(_flat({"environment": run.environment}))


def domain_values(domain: FinishedDomain) -> dict[str, float]:
    """All numbers of a finished domain."""
    values = {
        f"accuracy/{numbered(i, name)}": accuracy
        for i, (name, accuracy) in enumerate(zip(domain.domains, domain.matrix[-1], strict=False))
    }
    values[MARK] = domain.mean
    values |= {f"seen/{name}": value for name, value in _scores(domain.metrics)}
    if found := forgetting(domain.matrix):
        values["seen/forgetting"] = found.lost
    if domain.routing is not None:
        values["seen/routing"] = domain.routing
    for i, (name, accuracy) in enumerate(domain.unseen.items()):
        values[f"unseen/{numbered(i, name)}"] = accuracy
    values["cost/seconds"] = sum(domain.seconds.values())
    values |= {f"cost/seconds {phase}": each for phase, each in domain.seconds.items()}
    values |= {"cost/state bytes": domain.state_bytes}
    values |= {"cost/trained parameters": domain.trained_parameters}
    for name, value in _flat(domain.diagnostics):
        if isinstance(value, int | float) and not isinstance(value, bool):
            values[f"diagnostics/{plain(name)}"] = value
    return {name: float(value) for name, value in values.items()}


def record_values(record: Record) -> dict[str, float]:
    """All numbers of a complete run: the scores with their intervals, and what it cost in all."""
    values: dict[str, float] = {}
    for name, value in _scores(record.metrics):
        values[name] = value
    for metric in METRICS:
        if (found := interval([record], metric)) is not None:
            name = score_name(metric)
            values |= {f"{name}/low": found.low, f"{name}/high": found.high}
    values |= {f"oracle/{name}": value for name, value in _scores(record.oracle_metrics or {})}
    seconds = record.cost["seconds"]
    values["total/seconds"] = sum(seconds.values())
    values |= {f"total/seconds {phase}": each for phase, each in seconds.items()}
    values["total/peak memory bytes"] = record.cost["peak_memory_bytes"]
    return {name: float(value) for name, value in values.items()}


def record_name(run: TrackedRun) -> str:
    """The name of the copy of `record.json`. It is not the same: whoever collects the records below
    a folder must not take a copy without predictions for a run."""
    return f"record-{run.unique_id}.json"


def score_name(metric: str) -> str:
    """The name of a score without a star, which some trackers refuse."""
    return metric.replace("*", "_star")


def numbered(index: int, name: str) -> str:
    """The name of a domain, in the order of the stream and never the same twice."""
    return f"{index + 1}-{plain(name).replace('/', '_')}"


def plain(name: str) -> str:
    """A name of letters, digits and some signs."""
    return re.sub(r"[^A-Za-z0-9_. /-]", "_", name)


def _scores(metrics: Mapping[str, float | None]) -> Iterable[tuple[str, float]]:
    return [(score_name(name), value) for name, value in metrics.items() if value is not None]


def _flat(values: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Tables in tables as one, with dots; lists and what else there may be as text."""
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, str | int | float | bool):
            yield name, value
        elif isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
            yield name, ",".join(map(str, value))
        else:
            yield name, "none" if value is None else json.dumps(value)
