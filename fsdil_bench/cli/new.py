"""`fsdil-bench new-method` and `new-scenario`: a plugin that runs, to start from."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .common import debug_option, open_registry


def _arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """What both commands take."""
    command = debug_option(command)
    command = click.option(
        "--out", default=".", show_default=True, type=click.Path(path_type=Path),
        help="The folder to write it into.",
    )(command)  # fmt: skip
    command = click.option(
        "--package", is_flag=True,
        help="Write a folder that can be installed, with tests, instead of a single file.",
    )(command)  # fmt: skip
    return click.argument("name")(command)


@click.command("new-method", epilog="Example:  fsdil-bench new-method my-idea")
@_arguments
def new_method(name: str, package: bool, out: Path) -> None:
    """Write a method that runs at once, to start your own from."""
    _write("method", name, out, package, f"--method {name} --scenario drawn-1shot")


@click.command("new-scenario", epilog="Example:  fsdil-bench new-scenario my-pictures")
@_arguments
def new_scenario(name: str, package: bool, out: Path) -> None:
    """Write a scenario made by code that runs at once, to start your own from."""
    _write("scenario", name, out, package, f"--method ncm --scenario {name}-1shot")


def _write(kind: str, name: str, out: Path, package: bool, run: str) -> None:
    from fsdil_bench.plugins.scaffold import write_plugin

    registry = open_registry(())
    taken = registry.methods if kind == "method" else registry.scenarios
    written = write_plugin(kind, name, out, taken, package=package)
    for path in written:
        click.echo(f"wrote {path}")
    click.echo("next:")
    if package:
        folder = shlex.quote(str(out / name))
        editable = shlex.quote(f"{out / name}[test]")
        click.echo(f"  python -m pip install --editable {editable}")
        click.echo(f"  fsdil-bench run {run}")
        click.echo(f"  python -m pytest {folder}")
    else:
        plugin = f"--plugin {shlex.quote(str(written[0]))}"
        click.echo(f"  fsdil-bench run {plugin} {run}")
        if kind == "method":
            click.echo(f"  fsdil-bench check {plugin} {name}")
