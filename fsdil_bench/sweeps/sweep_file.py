"""What a sweep asks for: a TOML file, or flags for the common case, as a list of runs.

    name = "drawn"                    # settings of the sweep: see `request.Settings`
    jobs = 2

    [[grid]]                          # a run for every combination of the lists
    methods = ["ncm", "cvlc*"]
    scenarios = ["drawn"]             # with `shots` data sets, otherwise ids such as "drawn-1shot"
    shots = [1, 2, 4, 8]
    seeds = "0-2"
    orders = 5                        # the scenario's own order of domains, and four drawn ones
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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.tracking import check_trackers
from fsdil_bench.system.toml_files import read_toml

from .grid import KEYS, OPTIONS, SEE, Grids
from .launchers.launcher import Resources
from .request import (
    MOST_RUNS,
    OrderNumber,
    ResourceOptions,
    Selection,
    Settings,
    Sweep,
    SweepRun,
    threads_per_run,
)
from .sweep_text import SweepText, check_values
from .values import seconds, short, texts

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
    flags = SweepText({"grid": [selection.grid()], "name": "sweep"})
    file = flags if path is None else _open(path)
    for key in file.content:
        if key not in (*_SETTINGS, *_TABLES, *KEYS, *OPTIONS):
            with file.at(key):
                raise unknown("key", key, [*_SETTINGS, *_TABLES, *KEYS, *OPTIONS], SEE)
    settings = _settings(file, given or {})
    with file.at("track"):
        check_trackers(settings.track, registry)
    grids = Grids(
        file,
        registry,
        settings.planned,
        settings.reuse_base,
        settings.track,
        selection.about_orders(),
    )
    _check_resources(file, [*registry.methods, *settings.planned])
    asked = _distinct_runs(grids, file)
    _check_config(selection.config, {run.request.method for run in asked})
    runs = [
        replace(
            run,
            request=_with_config(run.request, selection.config),
            resources=_resources(file, run.request, settings),
        )
        for run in asked
        if path is None or selection.takes(run.request)
    ]
    if not runs:
        raise RequestError(f"{file.name}: no run is asked for", _why_none(asked, path))
    return Sweep(
        settings,
        tuple(run for run in runs if run.request.method in registry.methods),
        tuple(run for run in runs if run.request.method not in registry.methods),
        file.table("launcher_options"),
    )


def _distinct_runs(grids: Grids, file: SweepText) -> list[SweepRun]:
    found: dict[tuple[str, OrderNumber | None], SweepRun] = {}
    for number, run in enumerate(grids.runs()):
        if number == MOST_RUNS:
            raise RequestError(
                f"{file.name} asks for more than {MOST_RUNS:,} runs", "Divide it into sweeps."
            )
        found.setdefault((json.dumps(run.request.to_dict(), sort_keys=True), run.order), run)
    return list(found.values())


def _why_none(asked: Sequence[SweepRun], path: Path | None) -> str:
    if asked:
        return "--methods, --scenarios, --shots and --seeds choose none of its runs."
    if path is None:
        return "Give --methods and --scenarios."
    return f"Its lists are empty, or `exclude` leaves nothing: see {SEE}."


def plugin_files(path: Path) -> list[str]:
    """The plugin files that a sweep names: they are needed before methods are looked up."""
    file = _open(path)
    with file.at("plugins"):
        return texts("plugins", file.content["plugins"]) if file.content.get("plugins") else []


def _open(path: Path) -> SweepText:
    file = SweepText(read_toml(path, f"See {SEE}."), path, path.read_text(encoding="utf-8"))
    check_values(file)
    return file


def _settings(file: SweepText, given: Mapping[str, Any]) -> Settings:
    values = {key: value for key, value in file.content.items() if key in _SETTINGS}
    for key, value in values.items():
        with file.at(key):
            resolve(Settings, {key: value}, owner="the sweep", see=SEE)
    default = {"name": file.path.stem if file.path else "sweep"}
    found = resolve(Settings, default, values, given, owner="the sweep", see=SEE)
    with file.at("time_limit"):
        seconds(found.time_limit)
    with file.at("name"):
        # It names a folder, which must not be outside `out`.
        if found.name == ".." or Path(found.name).name != found.name:
            raise RequestError(f"name = {short(found.name)} does not fit", "Write a file's name.")
    return found


def _check_resources(file: SweepText, methods: Collection[str]) -> None:
    for name, value in file.table("resources").items():
        if isinstance(value, dict) and name not in methods:
            with file.at("", "resources", name):
                raise unknown("method", name, methods, "fsdil-bench list methods")


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


def _check_config(assignments: Iterable[str], methods: Collection[str]) -> None:
    """Refuse a `--set` that is of the wrong form, or for a method that the sweep does not have."""
    for assignment in assignments:
        key, equals, _ = assignment.partition("=")
        if not equals or not key.strip():
            raise RequestError(
                f"'{assignment}' is not of the form key=value",
                "Write `--set lr=0.1`, or `--set finetune.lr=0.1` for one method.",
            )
        method, dot, _ = key.strip().rpartition(".")
        if dot and method not in methods:
            raise unknown(f"method of this sweep in `--set {assignment}`:", method, sorted(methods))


def _with_config(request: RunRequest, assignments: Iterable[str]) -> RunRequest:
    """`--set key=value` for every method, `--set method.key=value` for one."""
    config = dict(request.config)
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        method, dot, option = key.strip().rpartition(".")
        if not dot or method == request.method:
            config[option] = value.strip()
    return replace(request, config=config)
