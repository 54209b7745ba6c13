"""`fsdil-bench leaderboard`: boards from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fsdil_bench.errors import RequestError

from .common import (
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
    read_records,
    strict_option,
)


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench leaderboard runs --out leaderboards\n"
    "  fsdil-bench leaderboard runs ~/runs-of-others --out leaderboards --copy-records\n"
    "  fsdil-bench leaderboard runs --complete-rows --out leaderboards --copy-records"
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", default="leaderboards", show_default=True, type=click.Path(path_type=Path),
              help="Folder to write the boards to.")  # fmt: skip
@click.option("--copy-records", is_flag=True, help="Also copy the records below --out.")
@click.option("--complete-rows", is_flag=True,
              help="Leave out unfinished runs, and rows that lack a seed others have.")  # fmt: skip
@click.option("--thumbnails", is_flag=True,
              help="Show test images on the page, where a scenario draws them.")  # fmt: skip
@click.option("--title", default="", help="Heading of the index and of the page.")
@json_option("Print the written files as JSON.")
@strict_option
@plugin_option
@debug_option
def leaderboard(
    runs: Sequence[Path],
    out: Path,
    copy_records: bool,
    complete_rows: bool,
    thumbnails: bool,
    title: str,
    as_json: bool,
    strict: bool,
    plugins: Sequence[str],
) -> None:
    """Make boards from all complete runs below RUNS.

    Writes Markdown pages (README.md is their index), CSV, JSON and LaTeX files, and index.html: one
    page to sort, filter and compare in, which needs no other file. Runs that were started and have
    no result are shown as incomplete or failed.
    """
    from fsdil_bench.analysis.grouping import in_complete_rows
    from fsdil_bench.analysis.unfinished import find_unfinished
    from fsdil_bench.report import leaderboards

    records, unfinished = read_records(runs, strict), find_unfinished(*runs)
    if not records:
        started = f" ({len(unfinished)} unfinished)" if unfinished else ""
        raise RequestError(
            f"there is no complete run below {', '.join(str(r) for r in runs)}{started}",
            "Run something first: fsdil-bench run --method ncm --scenario drawn-1shot",
        )
    click.echo(f"{len(records)} runs, {len(unfinished)} unfinished", err=True)
    if complete_rows:
        complete = in_complete_rows(records)
        if not complete:
            raise RequestError(
                "no row has all seeds of its board",
                "Leave out --complete-rows to see what there is.",
            )
        click.echo(f"in complete rows: {len(complete)} of {len(records)} runs", err=True)
        records, unfinished = complete, []
    if copy_records:
        leaderboards.copy_records(records, out)
    files = leaderboards.write_leaderboards(
        records, out, unfinished, open_registry(plugins), thumbnails, tell=_say, title=title
    )
    if as_json:
        print_json(files)
        return
    for file in files:
        click.echo(file)


def _say(line: str) -> None:
    click.echo(line, err=True)
