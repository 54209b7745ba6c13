"""One sweep from plan to summary: its folder, its launcher, and what an interrupt does."""

from __future__ import annotations

import datetime
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.exit_codes import DONE, FAILED, INTERRUPTED
from fsdil_bench.plugins.descriptors import LauncherInfo, load_factory
from fsdil_bench.plugins.options import NoConfig, resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.system.atomic_files import write_atomically

from .launchers.launcher import Launcher, LauncherSetup
from .plan import Plan
from .request import Sweep, threads_per_run
from .scheduler import Scheduler, Status, Watcher, counts


@dataclass(frozen=True)
class Summary:
    """How a sweep ended. `board` has all cells that could be run."""

    board: list[Status]
    plan: Plan
    folder: Path
    seconds: float
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """Done if every cell is complete, unless somebody stopped the sweep."""
        if self.interrupted:
            return INTERRUPTED
        complete = all(status.name == "done" for status in self.board) and not self.plan.blocked
        return DONE if complete else FAILED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 1),
            "counts": counts(self.board),
            "folder": str(self.folder),
            "cells": [_describe(status) for status in self.board],
            "blocked": [{**run.to_dict(), "reason": why} for run, why in self.plan.blocked],
            "planned": [run.to_dict() for run in self.plan.planned],
        }


def _describe(status: Status) -> dict[str, Any]:
    return status.cell.to_dict() | {
        "state": status.name,
        "attempts": status.attempt,
        "seconds": round(status.seconds, 1),
        "reason": status.reason if status.name != "done" else "",
        "failures": status.failures,
        "log": str(status.log or ""),
    }


def run_sweep(sweep: Sweep, plan: Plan, registry: Registry, watcher: Watcher) -> Summary:
    """Run what is not complete. SIGINT or SIGTERM stops the runs cleanly, a second one at once."""
    began = time.monotonic()
    folder = sweep_folder(Path(sweep.settings.out).absolute(), sweep.settings.name)
    setup = LauncherSetup(folder / "launcher", sweep.settings.jobs, threads_per_run(sweep.settings))
    launcher = make_launcher(registry, sweep.settings.launcher, sweep.launcher_options, setup)
    scheduler = Scheduler(plan.cells, launcher, folder, watcher, retries=sweep.settings.retries)
    with _signals(scheduler.stop):
        board = scheduler.run()
    summary = Summary(board, plan, folder, time.monotonic() - began, scheduler.interrupted)
    with suppress(OSError):  # a full disk: the runs themselves are what counts
        write_atomically(folder / "summary.json", json.dumps(summary.to_dict(), indent=1) + "\n")
    return summary


def sweep_folder(out: Path, name: str) -> Path:
    """A new folder for requests, outcomes and logs: `<out>/sweeps/<name>/<time>-<process>`."""
    stamp = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    for number in range(100):  # a clock that was set back may give the same time twice
        folder = out / "sweeps" / name / (f"{stamp}-{number}" if number else stamp)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RequestError(
                f"{folder} cannot be made: {error.strerror}", "Choose another folder with --out."
            ) from None
        return folder
    raise RequestError(f"{out / 'sweeps' / name} is full of folders {stamp}", "Remove them.")


def make_launcher(
    registry: Registry, name: str, given: Mapping[str, Any], setup: LauncherSetup
) -> Launcher:
    """The launcher `name` with the options `given`."""
    info = registry.launcher(name)
    try:
        options = launcher_options(info, given)
        launcher = load_factory(info.factory, f"launcher '{name}'")(
            LauncherSetup(setup.folder, setup.jobs, setup.threads, options)
        )
    except (ImportError, PluginError) as error:
        cause = error.__cause__ if isinstance(error, PluginError) else error
        if not info.extra or not isinstance(cause, ImportError):
            raise
        raise RequestError(
            f"launcher '{name}' cannot be used: {cause}", f"pip install 'fsdil-bench[{info.extra}]'"
        ) from None
    if not isinstance(launcher, Launcher):
        raise PluginError(f"launcher '{name}' is {launcher!r}, not a Launcher")
    return launcher


def launcher_options(info: LauncherInfo, given: Mapping[str, Any]) -> Any:
    """What `--launcher-set` says, checked; None for a launcher without options."""
    kind = load_factory(info.options, f"launcher '{info.name}'") if info.options else NoConfig
    see = f"fsdil-bench list launchers {info.name}"
    options = resolve(kind, given, owner=f"launcher {info.name}", see=see)
    return options if info.options else None


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    before = {
        number: signal.signal(number, lambda *_: stop())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
