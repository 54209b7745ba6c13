"""What can be asked of a sweep: its settings, its runs and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fsdil_bench.plugins.options import option
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.system.processors import available

from .launchers.launcher import Resources

#: The lists of a grid: one cell for every combination.
LISTS = ("methods", "scenarios", "shots", "seeds", "orders")
#: More runs than anybody waits for.
MOST_RUNS = 100_000


@dataclass(frozen=True)
class Settings:
    """How the sweep is carried out; the flags of `fsdil-bench sweep` win over the file."""

    name: str = option("", "of the sweep's folder below `out`; default: the file's name")
    out: str = option("runs", "folder for run records")
    launcher: str = option("local", "see `fsdil-bench list launchers`")
    jobs: int | None = option(None, "runs at a time", minimum=1)
    threads: int | None = option(None, "threads of each run", minimum=1)
    retries: int = option(1, "further tries for a run that crashed", minimum=0)
    time_limit: str | float | None = option(None, 'of each run: seconds, or "90m", "2h"')
    reuse_base: bool = option(False, "train the base domain once for all shots")
    track: tuple[str, ...] = option((), "trackers that log the runs; see `list trackers`")
    plugins: tuple[str, ...] = option((), "plugin files")
    planned: tuple[str, ...] = option((), "methods that are left out while no plugin provides them")


@dataclass(frozen=True)
class ResourceOptions:
    """What the runs of a method need."""

    cpus: int | None = option(None, "threads; default: those of the sweep", minimum=1)
    gpus: float = option(0.0, "graphics processors", minimum=0)
    memory_gb: float | None = option(None, "memory; a run starts only where it is free", minimum=0)
    time_limit: str | float | None = option(None, 'seconds, or "90m", "2h"; default: the sweep\'s')


@dataclass(frozen=True)
class OrderNumber:
    """Which of several orders of domains a run has, from 0.

    `drawn` is how many are drawn from the scenario's domains, 0 if the file lists them.
    """

    number: int
    drawn: int = 0
    free_base: bool = False


def named(request: RunRequest) -> dict[str, Any]:
    """What names a run among those of a sweep, as plain JSON types."""
    return {
        "method": request.method,
        "scenario": str(request.scenario),
        "seed": request.seed,
        **({"order": list(request.order)} if request.order else {}),
    }


@dataclass(frozen=True)
class SweepRun:
    """One run that a sweep asks for, and what it needs; `order` where there are several orders."""

    request: RunRequest
    resources: Resources = field(default_factory=Resources)
    order: OrderNumber | None = None

    def __str__(self) -> str:
        return str(self.request) + (f", order {self.order.number}" if self.order else "")

    def to_dict(self) -> dict[str, Any]:
        """What names the run, as plain JSON types."""
        return named(self.request)


@dataclass(frozen=True)
class Sweep:
    """Everything that is asked for. `planned` are runs of methods that no plugin provides yet."""

    settings: Settings
    runs: tuple[SweepRun, ...]
    planned: tuple[SweepRun, ...] = ()
    launcher_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """What the command line asks for: lists of a grid, or a choice among the runs of a file.

    `orders` is a number of orders of domains to draw. It and `free_base` win over a file.
    """

    methods: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    shots: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    config: tuple[str, ...] = ()
    orders: int | None = None
    free_base: bool = False

    def grid(self) -> dict[str, Any]:
        """As a grid of a file."""
        lists = {name: list(getattr(self, name)) for name in LISTS if name != "orders"}
        return {name: values for name, values in lists.items() if values}

    def about_orders(self) -> dict[str, Any]:
        """What it says about the orders of domains, as keys of a grid."""
        said = {"orders": self.orders, "free_base": self.free_base or None}
        return {name: value for name, value in said.items() if value is not None}

    def takes(self, request: RunRequest) -> bool:
        """Whether a run of a file is chosen."""
        method, scenario = request.method, request.scenario
        return (
            (not self.methods or any(fnmatchcase(method, name) for name in self.methods))
            and (not self.scenarios or bool({str(scenario), scenario.dataset} & {*self.scenarios}))
            and (not self.shots or scenario.shots in self.shots)
            and (not self.seeds or request.seed in self.seeds)
        )


def threads_per_run(settings: Settings) -> int:
    """As set; else an equal part of the cores on this machine, one elsewhere."""
    if settings.threads is not None:
        return settings.threads
    return max(1, available() // (settings.jobs or 1)) if settings.launcher == "local" else 1
