"""What can be asked of a sweep: its settings, the options of its runs, and single wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.plugins.options import option
from fsdil_bench.system.processors import available

from .launchers.launcher import Resources

#: The lists of a grid: one cell for every combination.
LISTS = ("methods", "scenarios", "shots", "seeds")


@dataclass(frozen=True)
class Settings:
    """How the sweep goes on; the flags of `fsdil-bench sweep` win over the file."""

    name: str = option("", "of the sweep's folder below `out`; default: the file's name")
    out: str = option("runs", "folder for run records")
    launcher: str = option("local", "see `fsdil-bench list launchers`")
    jobs: int | None = option(None, "runs at a time", minimum=1)
    threads: int | None = option(None, "threads of each run", minimum=1)
    retries: int = option(1, "further tries for a run that crashed", minimum=0)
    time_limit: str | float | None = option(None, 'of each run: seconds, or "90m", "2h"')
    reuse_base: bool = option(False, "train the base domain once for all shots")
    plugins: tuple[str, ...] = option((), "plugin files")
    planned: tuple[str, ...] = option((), "methods that are left out while nobody provides them")


@dataclass(frozen=True)
class RunOptions:
    """The options of `fsdil-bench run` that a grid or a method may set."""

    backbone: str = option("", "default: the scenario's")
    data: str | None = option(None, "where a scenario's images are")
    order: tuple[str, ...] = option((), "domains in order")
    base: str = option("", "the domain that comes first")
    base_limit: int | None = option(None, "at most so many base images per class", minimum=1)
    names: str | None = option(None, "JSON file with class names")
    synonyms: str | None = option(None, "JSON file with synonyms")
    transform: str = option("", "default: the scenario's")
    workers: int | None = option(None, "threads that decode images", minimum=0)
    device: str = option("auto", "auto, cpu, cuda, mps ...")
    precision: str = option("auto", "auto, fp32, tf32 or bf16")
    batch_size: int | None = option(None, "images per forward pass without training", minimum=1)
    deterministic: bool = option(False, "ask torch for the same bits every time")
    keep_checkpoints: bool = option(False, "keep the state after every domain")
    sealed: bool = option(False, "learn and predict in separate processes")


@dataclass(frozen=True)
class ResourceOptions:
    """What the runs of a method need."""

    cpus: int | None = option(None, "threads; default: those of the sweep", minimum=1)
    gpus: float = option(0.0, "graphics processors", minimum=0)
    memory_gb: float | None = option(None, "memory; a run starts only where it is free", minimum=0)
    time_limit: str | float | None = option(None, 'seconds, or "90m", "2h"; default: the sweep\'s')


@dataclass(frozen=True)
class Wish:
    """One run that is asked for: arguments of `fsdil_bench.run`, and what the run needs."""

    method: str
    scenario: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)

    def __str__(self) -> str:
        return f"{self.method} on {self.scenario}, seed {self.seed}"


@dataclass(frozen=True)
class Sweep:
    """All that is asked for. `planned` are wishes for methods that nobody provides yet."""

    settings: Settings
    wishes: tuple[Wish, ...]
    planned: tuple[Wish, ...] = ()
    launcher_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """What the command line asks for: lists of a grid, or a choice among the cells of a file."""

    methods: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    shots: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    config: tuple[str, ...] = ()

    def grid(self) -> dict[str, Any]:
        """As a grid of a file."""
        lists = {name: list(getattr(self, name)) for name in LISTS}
        return {name: values for name, values in lists.items() if values}

    def takes(self, wish: Wish) -> bool:
        """Whether a cell of a file is meant."""
        scenario = ScenarioId.parse(wish.scenario)
        return (
            (not self.methods or any(fnmatchcase(wish.method, name) for name in self.methods))
            and (not self.scenarios or bool({wish.scenario, scenario.dataset} & {*self.scenarios}))
            and (not self.shots or scenario.shots in self.shots)
            and (not self.seeds or wish.seed in self.seeds)
        )


def threads_per_run(settings: Settings) -> int:
    """On this machine an equal part of its cores; elsewhere one, unless something is said."""
    if settings.threads is not None:
        return settings.threads
    return max(1, available() // (settings.jobs or 1)) if settings.launcher == "local" else 1
