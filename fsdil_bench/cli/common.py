"""What several commands share: options, the registry with its warnings, the console, JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.plugins.registry import Registry, load_registry

from .names import files

if TYPE_CHECKING:
    from rich.console import Console

    from fsdil_bench.progress import Progress
    from fsdil_bench.records.record import Record


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The `--plugin` option shared by all commands that need the registry."""
    return click.option(
        "--plugin", "plugins", multiple=True, metavar="FILE.py", shell_complete=files,
        help="Also load this plugin file; may be given several times.",
    )(command)  # fmt: skip


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--debug` after a sub-command works as it does before one."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")(
        command
    )


_STDOUT = "fsdil_bench.stdout"


def json_option(what: str = "Print as JSON.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--json`, shared by all commands that print a table; `print_json` prints the answer.

    Nothing else reaches standard output, whatever a plugin prints while the command works.
    """
    return click.option("--json", "as_json", is_flag=True, callback=_only_json, help=what)


def _only_json(context: click.Context, parameter: click.Parameter, asked: bool) -> bool:
    del parameter
    if asked and not context.resilient_parsing:
        context.meta[_STDOUT] = sys.stdout
        context.with_resource(redirect_stdout(sys.stderr))
    return asked


def print_json(values: Any) -> None:
    """The one JSON document of a command with `--json`."""
    text = json.dumps(_plain(values), indent=1, allow_nan=False)
    click.echo(text, file=click.get_current_context().meta.get(_STDOUT))


def _plain(value: Any) -> Any:
    """`value` in types that JSON has. A number that is none, or infinite, is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


class Points(click.FloatRange):
    """Points of accuracy: a finite number from 0 to 100."""

    def __init__(self) -> None:
        super().__init__(0, 100)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Refuse `nan`, which lies in every range."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number


def list_option(*flags: str, **shape: Any) -> Callable[..., Any]:
    """An option with several values, as one text: separated by commas, or given again for each."""
    return click.option(*flags, multiple=True, callback=_with_commas, **shape)


def _with_commas(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> str:
    del context, parameter
    return ",".join(values)


def names_in(text: str) -> list[str]:
    """The names in a text with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def figure_file(context: click.Context, parameter: click.Parameter, file: Path | None) -> Any:
    """Refuse a file that cannot be a figure when options are read, before any work is done."""
    del context, parameter
    if file is not None:
        from fsdil_bench.report.plots.style import check_ending

        check_ending(file)
    return file


def open_registry(plugins: Sequence[str], *, warn: bool = True, sealed: bool = False) -> Registry:
    """All plugins, with a warning line for each problem.

    For sealed runs, those of third parties are listed and not imported.
    """
    registry = load_registry(plugins, () if sealed else None)
    if warn:
        for line in registry.warnings():
            print_warning(line)
    return registry


def strict_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The `--strict` option shared by all commands that read many records."""
    return click.option(
        "--strict", is_flag=True, help="Refuse damaged records instead of leaving them out."
    )(command)


def read_records(runs: Sequence[str | Path], strict: bool) -> list[Record]:
    """All complete runs below folders, with a warning line for each that is left out."""
    from fsdil_bench.records.record import find_records

    records = find_records(*runs, strict=strict, tell=print_warning)
    for record in records:
        warn_of_verdict(record)
    return records


def warn_of_verdict(record: Record) -> None:
    """A warning line if the verdict beside a record does not count."""
    from fsdil_bench.records.verdict_file import verdict_problem

    if problem := verdict_problem(record):
        print_warning(problem)


def print_warning(line: str) -> None:
    """A warning line on standard error."""
    click.secho(f"warning: {line}", fg="yellow", err=True)


def console() -> Console:
    """Where tables go: standard output."""
    from rich.console import Console

    class Table(Console):
        def on_broken_pipe(self) -> None:
            """Let `main` end the process, with the code that all commands have for it."""
            raise BrokenPipeError

    terminal = Table(highlight=False)
    if terminal.is_terminal or "COLUMNS" in os.environ:
        return terminal
    # Tables in a pipe or a file must not be folded to an assumed 80 columns.
    return Table(highlight=False, width=200)


def run_progress(quiet: bool) -> Progress:
    """How far a long command is: bars in a terminal, lines elsewhere, nothing if `quiet`."""
    from rich.console import Console

    from fsdil_bench.progress import PlainProgress, Progress, RichProgress

    if quiet:
        return Progress()
    terminal = Console(stderr=True)
    return RichProgress(terminal) if terminal.is_terminal else PlainProgress()
