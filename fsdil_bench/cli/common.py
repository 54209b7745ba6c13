"""What several commands share: options, the registry with its warnings, the console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.plugins.registry import Registry, load_registry

if TYPE_CHECKING:
    from rich.console import Console

    from fsdil_bench.progress import Progress
    from fsdil_bench.records.record import Record


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The `--plugin` option shared by all commands that need the registry."""
    return click.option(
        "--plugin", "plugins", multiple=True, metavar="FILE.py",
        help="Also load this plugin file; may be given several times.",
    )(command)  # fmt: skip


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--debug` after a sub-command works as it does before one."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")(
        command
    )


def open_registry(plugins: Sequence[str], *, warn: bool = True, sealed: bool = False) -> Registry:
    """All plugins, with a warning line for each problem.

    For sealed runs, those of third parties are listed and not imported.
    """
    registry = load_registry(plugins, () if sealed else None)
    if warn:
        for line in registry.warnings():
            _warn(line)
    return registry


def strict_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The `--strict` option shared by all commands that read many records."""
    return click.option(
        "--strict", is_flag=True, help="Refuse damaged records instead of leaving them out."
    )(command)


def read_records(runs: Sequence[str | Path], strict: bool) -> list[Record]:
    """All complete runs below folders, with a warning line for each that is left out."""
    from fsdil_bench.records.record import find_records

    return find_records(*runs, strict=strict, tell=_warn)


def _warn(line: str) -> None:
    click.secho(f"warning: {line}", fg="yellow", err=True)


def console() -> Console:
    """Where tables go: standard output."""
    from rich.console import Console

    terminal = Console(highlight=False)
    # Tables in a pipe or a file must not be folded to an assumed 80 columns.
    return terminal if terminal.is_terminal else Console(highlight=False, width=200)


def run_progress(quiet: bool) -> Progress:
    """How far a long command is: bars in a terminal, lines elsewhere, nothing if `quiet`."""
    from rich.console import Console

    from fsdil_bench.progress import PlainProgress, Progress, RichProgress

    if quiet:
        return Progress()
    terminal = Console(stderr=True)
    return RichProgress(terminal) if terminal.is_terminal else PlainProgress()
