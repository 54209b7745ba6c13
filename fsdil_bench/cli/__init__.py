"""The command line `fsdil-bench`: one file per group of commands.

Only what a command needs is imported inside it, so that `list` and `--help` answer at once.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from fsdil_bench import __version__
from fsdil_bench.errors import FsdilError, RequestError, from_system
from fsdil_bench.exit_codes import BAD_INPUT, DONE, FAILED, INTERRUPTED, PIPE_CLOSED
from fsdil_bench.system.processors import respect_limits
from fsdil_bench.system.quick_exit import leave
from fsdil_bench.system.waiting_threads import wait_politely

from .cache import cache
from .check import check
from .compare import compare, rank
from .completion import VARIABLE, completion
from .cost import cost
from .data import data
from .leaderboard import leaderboard
from .listing import listing
from .new import new_method, new_scenario
from .paper import paper
from .results import show
from .run import run
from .sweep import sweep
from .tune import tune
from .verify import submit, verify
from .view import view

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def entry_point() -> NoReturn:
    """What the shell starts: `main`, and the end of the process."""
    code: object = DONE
    try:
        main()
    except SystemExit as end:
        code = end.code
    leave(code if isinstance(code, int) else DONE if code is None else FAILED)


def main() -> None:
    """Run the command line; errors that a user can fix are one message, without a traceback."""
    debug = "--debug" in sys.argv
    respect_limits()
    wait_politely()
    try:
        _need_surroundings()
        try:
            # `--json` sends what is printed elsewhere; a wrong command line leaves it like that.
            with redirect_stdout(sys.stdout):
                cli.main(standalone_mode=False, complete_var=VARIABLE)
        finally:
            sys.stdout.flush()  # a full disk is reported here, not after the end
    except (click.exceptions.Abort, KeyboardInterrupt):
        _fail("interrupted; the same command resumes after the last finished domain", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(BAD_INPUT)
    except FsdilError as error:
        if debug:
            raise
        _fail("\n".join(part for part in (error.message, error.remedy) if part), error.exit_code)
    except BrokenPipeError:
        _end_unheard()
    except OSError as error:
        if debug:
            raise
        if error.filename is None:
            _drop_output()
        clear = from_system(error)
        _fail(f"{clear.message}\n{clear.remedy}", clear.exit_code)
    except Exception as error:
        if debug:
            raise
        _fail(
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a fault of fsdil-bench; --debug shows the traceback for a report.",
            FAILED,
        )


def _need_surroundings() -> None:
    """Every command prints, and most take paths as seen from the current folder. An empty path
    would be that folder, and rich reads COLUMNS."""
    if not re.fullmatch("[1-9][0-9]{0,5}", os.environ.get("COLUMNS", "1")):
        del os.environ["COLUMNS"]
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        raise FsdilError("standard output is closed", "Send it to a file, or to /dev/null.")
    if "" in sys.argv[1:]:
        raise RequestError(
            "an argument is empty", "Leave it out; a variable of the shell may not be set."
        )
    try:
        Path.cwd()
    except FileNotFoundError:
        raise FsdilError("the current folder was removed", "Change to another: cd ~") from None


def _drop_output() -> None:
    """Do not try again at the end of the process to write what could not be written."""
    with suppress(OSError):  # not a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_unheard() -> NoReturn:
    """End without a word: the program that read the output has ended."""
    _drop_output()
    sys.exit(PIPE_CLOSED)


def _fail(text: str, code: int) -> NoReturn:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(text, err=True)
    sys.exit(code)


class _Commands(click.Group):
    """All commands. Click would make another exit code of an output that nobody reads."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; `--help` is printed meanwhile."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            _end_unheard()

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _end_unheard()


@click.group(
    cls=_Commands,
    context_settings=CONTEXT,
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench run --method ncm --scenario drawn-1shot\n"
    "  fsdil-bench list methods\n"
    "  fsdil-bench leaderboard runs --out leaderboards",
)
@click.version_option(__version__, prog_name="fsdil-bench")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def cli(debug: bool) -> None:
    """Benchmark few-shot domain-incremental learning: methods learn streams of domains."""
    del debug  # read by main(), where errors are caught


for command in (
    run, sweep, tune, cost, check, listing, data, cache, show, compare, rank, leaderboard, view,
    paper, verify, submit, new_method, new_scenario, completion,
):  # fmt: skip
    cli.add_command(command)
