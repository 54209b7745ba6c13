"""What a sweep asks for: a TOML file, or flags for the common case, as a list of runs.

    name = "drawn"                    # settings of the sweep: see `request.Settings`
    jobs = 2

    [[grid]]                          # a run for every combination of the lists
    methods = ["ncm", "cvlc*"]
    scenarios = ["drawn"]             # with `shots` data sets, otherwise ids such as "drawn-1shot"
    shots = [1, 2, 4, 8]
    seeds = "0-2"
    exclude = [{ method = "cvlc-lora", shots = 8 }]

    [method.finetune]                 # options of runs for one method
    config = { steps = 50 }

    [resources.cvlc]                  # what its runs need
    memory_gb = 4

A mistake is reported with the file, the line and the remedy.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.system.toml_files import read_toml

from .grid import SEE, Grids
from .launchers.launcher import Resources
from .request import (
    LISTS,
    ResourceOptions,
    Selection,
    Settings,
    Sweep,
    SweepRun,
    threads_per_run,
)
from .sweep_text import SweepText
from .values import seconds

_SETTINGS = tuple(field.name for field in dataclasses.fields(Settings))
_TABLES = ("grid", "method", "resources", "launcher_options", "include")


def read_sweep(
    path: Path | None,
    registry: Registry,
    selection: Selection = Selection(),  # noqa: B008  (frozen)
    given: Mapping[str, Any] | None = None,
) -> Sweep:
    """The sweep in a file, or, without one, the grid that `selection` names.

    `given` are settings from the command line. Methods are looked up in `registry`.
    """
    if path is None:
        file = SweepText({"grid": [selection.grid()], "name": "sweep"})
    else:
        file = SweepText(_content(path), path, path.read_text(encoding="utf-8"))
    for key in file.content:
        if key not in (*_SETTINGS, *_TABLES, *LISTS):
            with file.at(key):
                raise unknown("key", key, [*_SETTINGS, *_TABLES, *LISTS], SEE)
    settings = _settings(file, given or {})
    grids = Grids(file, registry, settings.planned, settings.reuse_base)
    requests = {
        json.dumps(request.to_dict(), sort_keys=True): request for request in grids.requests()
    }
    runs = [
        SweepRun(_with_config(request, selection.config), _resources(file, request, settings))
        for request in requests.values()
        if path is None or selection.takes(request)
    ]
    if not runs:
        raise RequestError(f"{file.name}: no run is asked for", "Give methods and scenarios.")
    return Sweep(
        settings,
        tuple(run for run in runs if run.request.method in registry.methods),
        tuple(run for run in runs if run.request.method not in registry.methods),
        file.table("launcher_options"),
    )


def plugin_files(path: Path) -> list[str]:
    """The plugin files that a sweep names: they are needed before methods are looked up."""
    found = _content(path).get("plugins", [])
    return [found] if isinstance(found, str) else [str(file) for file in found]


def _content(path: Path) -> dict[str, Any]:
    return read_toml(path, f"See {SEE}.")


def _settings(file: SweepText, given: Mapping[str, Any]) -> Settings:
    values = {key: value for key, value in file.content.items() if key in _SETTINGS}
    for key, value in values.items():
        with file.at(key):
            resolve(Settings, {key: value}, owner="the sweep", see=SEE)
    default = {"name": file.path.stem if file.path else "sweep"}
    found = resolve(Settings, default, values, given, owner="the sweep", see=SEE)
    with file.at("time_limit"):
        seconds(found.time_limit)
    return found


def _resources(file: SweepText, request: RunRequest, settings: Settings) -> Resources:
    """What [resources] says, and [resources.METHOD] over it."""
    everything = file.table("resources")
    shared = {key: value for key, value in everything.items() if not isinstance(value, dict)}
    own = everything.get(request.method, {})
    with file.at("", "resources", request.method if own else None):
        found = resolve(ResourceOptions, shared, own, owner="[resources]", see=SEE)
        limit = found.time_limit if found.time_limit is not None else settings.time_limit
        return Resources(
            cpus=found.cpus or threads_per_run(settings),
            gpus=found.gpus,
            memory_gb=found.memory_gb,
            time_limit=seconds(limit),
        )


def _with_config(request: RunRequest, assignments: Iterable[str]) -> RunRequest:
    """`--set key=value` for every method, `--set method.key=value` for one."""
    config = dict(request.config)
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise RequestError(
                f"'{assignment}' is not of the form key=value",
                "Write `--set lr=0.1`, or `--set finetune.lr=0.1` for one method.",
            )
        method, dot, option = key.strip().rpartition(".")
        if not dot or method == request.method:
            config[option] = value.strip()
    return replace(request, config=config)
