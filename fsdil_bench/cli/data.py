"""`fsdil-bench data`: where images are, how to get them, whether they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.data.published.locations import (
    DataSet,
    data_root,
    data_set,
    get_command,
    named_data_set,
)
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.exit_codes import INTERRUPTED
from fsdil_bench.plugins.registry import Registry

from . import names
from .common import (
    console,
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
)

if TYPE_CHECKING:
    from fsdil_bench.data.published.install import Inventory
    from fsdil_bench.progress import Progress


class StoppedError(FsdilError):
    """Ctrl-C, with how to continue."""

    exit_code = INTERRUPTED


@click.group(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench data list\n"
    "  fsdil-bench data get core50 --dry-run\n"
    "  fsdil-bench data get core50\n"
    "\n"
    "Only `data get` downloads anything. Images are kept in $FSDIL_DATA/<data set>, or\n"
    "in the user's data folder where FSDIL_DATA is not set."
)
def data() -> None:
    """Get, verify and find the images of data sets."""


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--data`, which means the same as for a run."""
    return click.option(
        "--data", "folder", type=click.Path(path_type=Path), metavar="FOLDER",
        help="The data set's own folder.  [default: $FSDIL_DATA/<data set>]",
    )(command)  # fmt: skip


@data.command("list", epilog="Example:  fsdil-bench data list --json")
@json_option()
@plugin_option
@debug_option
def list_data(as_json: bool, plugins: Sequence[str]) -> None:
    """List data sets: size, licence, how to get them, and what is here."""
    rows: list[dict[str, Any]] = [
        {
            "dataset": found.name,
            "size": found.size,
            "bytes": found.bytes,
            "licence": found.source.license,
            "how": _how(found),
            "folder": found.path.name,
            "here": found.presence(),
            "path": str(found.path),
            "homepage": found.source.homepage,
        }
        for found in _all_data_sets(open_registry(plugins))
    ]
    if as_json:
        print_json(rows)
        return
    from fsdil_bench.report.terminal import table

    lines = [
        [row["dataset"], row["size"], row["licence"], ", then ".join(row["how"]), row["folder"],
         row["here"]]
        for row in rows
    ]  # fmt: skip
    columns = ["data set", "size", "licence", "how", "folder", "here"]
    console().print(table(columns, lines))
    click.echo(f"folders are below {data_root()}")


@data.command(
    "get",
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench data get core50\n"
    "  fsdil-bench data get core50 --data /scratch/core50\n"
    "\n"
    "The same command again continues where a killed one stopped and fetches nothing twice.",
)
@click.argument("name", shell_complete=names.data_sets)
@data_option
@click.option("--dry-run", is_flag=True, help="Only show what would be fetched, and where to.")
@click.option("--fresh", is_flag=True, help="Fetch again what is already there.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def get_data(
    name: str, folder: Path | None, dry_run: bool, fresh: bool, quiet: bool, plugins: Sequence[str]
) -> None:
    """Download and verify a data set.

    Licence, size and place are shown first. For a data set without a plain download, the steps to
    take by hand are shown; the exit code is 0 once it is complete.
    """
    found = named_data_set(open_registry(plugins), name, folder)
    _introduce(found)
    if dry_run:
        _show_plan(found, fresh=fresh)
        return
    try:
        inventory = _obtain(found, _progress(quiet), fresh=fresh)
    except KeyboardInterrupt:
        raise StoppedError("interrupted; the same command continues where it stopped") from None
    if inventory.problems and found.source.manual:
        _show_steps(found)
    again = f"{get_command(found, given=folder is not None)} --fresh"
    _report(found, inventory, f"`{again}` downloads it again." if found.source.downloads else "")


@data.command(
    "verify",
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench data verify core50\n"
    "  fsdil-bench data verify domainnet --quick\n"
    "\n"
    "All images are read once to find copies; runs reuse what was found.",
)
@click.argument("name", shell_complete=names.data_sets)
@data_option
@click.option("--quick", is_flag=True, help="Do not read the images to find copies.")
@json_option("Print what was found as JSON.")
@plugin_option
@debug_option
def verify_data(
    name: str, folder: Path | None, quick: bool, as_json: bool, plugins: Sequence[str]
) -> None:
    """Check whether a data set is complete.

    Every problem is listed; the exit code is 1 if there are any. Notes are not problems: they
    report lists that are not as published, and images both for training and for testing.
    """
    from fsdil_bench.data.published.install import copies_remark, verify

    registry = open_registry(plugins)
    found = named_data_set(registry, name, folder)
    command = get_command(found, given=folder is not None)
    inventory = verify(found)
    if not quick:
        copies = copies_remark(registry.scenario(name), found)
        inventory = replace(inventory, remarks=inventory.remarks + copies)
    if as_json:
        print_json({"dataset": found.name, "path": found.path} | asdict(inventory))
    _report(found, inventory, f"`{command}` {_what_get_does(found)}.")


@data.command("path", epilog="Example:  ls $(fsdil-bench data path core50)")
@click.argument("name", shell_complete=names.data_sets)
@data_option
@plugin_option
@debug_option
def data_path(name: str, folder: Path | None, plugins: Sequence[str]) -> None:
    """Print a data set's folder.

    The exit code is 1 if its images are not there.
    """
    found = named_data_set(open_registry(plugins), name, folder)
    click.echo(found.path)
    presence = found.presence()
    if presence != "present":
        command = get_command(found, given=folder is not None)
        raise FsdilError(
            f"data set '{name}' is {presence}", f"`{command}` {_what_get_does(found)}."
        )


def _all_data_sets(registry: Registry) -> Iterator[DataSet]:
    for info in registry.scenarios.values():
        try:
            if info.source:
                yield data_set(info)
        except PluginError as error:
            click.secho(f"warning: {error.message}", fg="yellow", err=True)


def _obtain(found: DataSet, progress: Progress, *, fresh: bool) -> Inventory:
    """Download what can be downloaded, unless the data set is complete already."""
    from fsdil_bench.data.published.install import get, mark_complete, verify

    inventory = verify(found)
    if not inventory.problems and not fresh:
        mark_complete(found)
        progress.say("already complete, nothing to download")
        return inventory
    if not found.source.downloads:
        return inventory
    get(found, progress, fresh=fresh)
    progress.say(f"verifying {found.path}")
    return verify(found)


def _introduce(found: DataSet) -> None:
    """What a user should know before anything is fetched."""
    click.echo(f"{found.name}: {found.summary}")
    facts = {
        "size": found.size or "unknown",
        "licence": found.source.license,
        "homepage": found.source.homepage,
        "folder": str(found.path),
    }
    for fact, value in facts.items():
        click.echo(f"  {fact:<9} {value}")


def _show_plan(found: DataSet, *, fresh: bool) -> None:
    """What `get` would do; like it, this takes a complete data set as it is."""
    from rich.filesize import decimal

    from fsdil_bench.data.published.install import verify

    if not fresh and not verify(found).problems:
        click.echo("already complete, nothing to download")
        return
    for download in found.source.downloads if fresh else found.pending():
        size = f" ({decimal(download.size)})" if download.size else ""
        click.echo(f"would fetch {download.url}{size}\n  to {found.path / download.path}")
        if download.unpack is not None:
            click.echo(f"  and unpack it into {found.path / download.unpack}")
    if found.source.manual:
        _show_steps(found)


def _show_steps(found: DataSet) -> None:
    click.echo("\nSteps to take by hand:")
    for number, step in enumerate(found.source.manual, 1):
        click.echo(f"  {number}. {step}")
    click.echo(f"Put the files into {found.path} so that it looks like this:")
    for line in found.source.layout:
        click.echo(f"  {line}")
    click.echo(f"Then check them: fsdil-bench data verify {found.name}\n")


def _report(found: DataSet, inventory: Inventory, remedy: str) -> None:
    """The result of `verify`; problems end the command with exit code 1."""
    for remark in inventory.remarks:
        click.echo(f"  note: {remark}")
    if not inventory.problems:
        click.echo(f"{found.name}: OK, {inventory} in {found.path}")
        return
    for problem in inventory.problems:
        click.echo(f"  {problem}")
    count = len(inventory.problems)
    raise FsdilError(
        f"data set '{found.name}' is not complete: {count} problem{'s' if count > 1 else ''}",
        remedy,
    )


def _progress(quiet: bool) -> Progress:
    from rich.console import Console

    from fsdil_bench.progress import Progress

    from .transfer_progress import TransferBars, TransferLines

    if quiet:
        return Progress()
    terminal = Console(stderr=True)
    return TransferBars(terminal) if terminal.is_terminal else TransferLines()


def _what_get_does(found: DataSet) -> str:
    return "downloads it" if found.source.downloads else "shows the steps to get it"


def _how(found: DataSet) -> list[str]:
    """The steps to get it."""
    steps = {"download": found.source.downloads, "by hand": found.source.manual}
    return [step for step, needed in steps.items() if needed] or ["by hand"]
