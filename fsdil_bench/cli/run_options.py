"""The options of a run on the command line, made from the fields of `RunRequest`."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.options import parse_assignments
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.seeds import check_seed
from fsdil_bench.sweeps.values import number_list
from fsdil_bench.system.toml_files import read_toml

from . import names
from .common import list_option

#: Fields that commands ask for in their own way.
_OWN_WAY = ("method", "scenario", "seed")
_SHORT = {"backbone": "-b"}
_COMPLETED = {"backbone": names.backbones}
_TABLES = {
    "config": [
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A method's option."
        ),
        click.option(
            "--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="TOML file with the method's options; --set wins over it.",
        ),
    ],
    "track": [
        click.option(
            "--track", multiple=True, metavar="NAME", shell_complete=names.trackers,
            help="Also log the run with a tracker, such as mlflow; may be given several times.",
        ),
    ],
    "scenario_options": [
        click.option(
            "--scenario-set", "scenario_settings", multiple=True, metavar="KEY=VALUE",
            help="A scenario's option.",
        ),
    ],
}  # fmt: skip
_OUT = click.option(
    "--out", default="runs", show_default=True, type=click.Path(path_type=Path),
    help="Folder for run records.",
)  # fmt: skip


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all options of a run but method, scenario and seed, and `--out`."""
    hints = typing.get_type_hints(RunRequest)
    options = [
        option
        for field in dataclasses.fields(RunRequest)
        if field.name not in _OWN_WAY
        for option in _TABLES.get(field.name) or [_option(field, hints[field.name])]
    ]
    for option in reversed([*options, _OUT]):
        command = option(command)
    return command


def _option(field: dataclasses.Field[Any], hint: Any) -> Callable[..., Any]:
    """The option for one field, by its type, default and range."""
    flags = [f"--{field.name.replace('_', '-')}"]
    if field.name in _SHORT:
        flags.append(_SHORT[field.name])
    shape: dict[str, Any] = {"default": field.default, "show_default": bool(field.default)}
    if hint is bool:
        shape = {"is_flag": True}
    elif hint == tuple[str, ...]:
        return list_option(*flags, help=field.metadata["help"])
    elif int in typing.get_args(hint):
        shape = {"type": click.IntRange(field.metadata["minimum"])}
    elif field.metadata.get("path"):
        shape = {"type": click.Path(path_type=Path)}
    completer = _COMPLETED.get(field.name)
    return click.option(*flags, help=field.metadata["help"], shell_complete=completer, **shape)


def run_request(
    *,
    settings: Sequence[str],
    config_file: Path | None,
    scenario_settings: Sequence[str],
    track: Sequence[str] = (),
    **fields: Any,
) -> RunRequest:
    """The request that the options of a command ask for."""
    config = read_toml(config_file, "Write lines like `lr = 0.1`.") if config_file else {}
    return RunRequest.of(
        config=config | parse_assignments(settings),
        scenario_options=parse_assignments(scenario_settings),
        track=",".join(track),
        **fields,
    )


def parse_seeds(seed: int | None, seeds: str) -> list[int]:
    """The seeds that `--seed` or `--seeds` ask for; 0 by default."""
    if not seeds:
        return [check_seed(seed or 0)]
    if seed is not None:
        raise RequestError("--seed and --seeds exclude each other", "Give one of them.")
    return [check_seed(each) for each in number_list("--seeds", seeds)]
