"""`fsdil-bench compare` and `fsdil-bench rank`: which method is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.records.metrics import METRICS

from . import names
from .common import (
    console,
    debug_option,
    figure_file,
    json_option,
    print_json,
    read_records,
    strict_option,
)

if TYPE_CHECKING:
    from fsdil_bench.records.record import Record

_BOARDS_FILE = "leaderboards.json"

metric_option = click.option(
    "--metric", type=click.Choice(METRICS), default="AA*", show_default=True,
    help="The score to compare by.",
)  # fmt: skip
plot_option = click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", callback=figure_file,
    help="Also draw a figure (.png, .svg or .pdf).",
)  # fmt: skip


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench compare cvlc slda --scenario drawn-1shot\n"
    "  fsdil-bench compare cvlc cvlc-lora leaderboards/records --scenario drawn-4shot\n"
    "  fsdil-bench compare runs/drawn-1shot/cvlc other/drawn-1shot/cvlc --plot difference.png"
)
@click.argument("a", shell_complete=names.or_files(names.methods))
@click.argument("b", shell_complete=names.or_files(names.methods))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--scenario", help="Only runs of this scenario, for instance drawn-1shot.",
    shell_complete=names.scenarios,
)  # fmt: skip
@metric_option
@json_option("Print everything as JSON.")
@plot_option
@strict_option
@debug_option
def compare(
    a: str,
    b: str,
    runs: Sequence[Path],
    scenario: str | None,
    metric: str,
    as_json: bool,
    plot: Path | None,
    strict: bool,
) -> None:
    """Compare two methods on the same test images and seeds.

    A and B are methods with runs below RUNS (default: runs), or folders of runs of one method each.
    Prints A minus B with a confidence interval over test images and seeds, on which domains and
    images the two differ, and what each costs.
    """
    from fsdil_bench.analysis import comparison

    if not runs and Path("runs").is_dir():
        runs = [Path("runs")]
    known = read_records(runs, strict)
    ours, theirs = (_runs_of(name, known, runs, scenario, strict) for name in (a, b))
    found = comparison.compare(ours, theirs, metric)
    if as_json:
        print_json(asdict(found))
    else:
        from fsdil_bench.report.terminal_comparison import comparison_tables

        console().print(comparison_tables(found))
    if plot:
        from fsdil_bench.report.plots.comparison import plot_comparison

        click.echo(plot_comparison(found, ours, theirs, plot))


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench rank runs --plot ranks.svg\n"
    "  fsdil-bench rank leaderboards"
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@metric_option
@json_option("Print everything as JSON.")
@plot_option
@strict_option
@debug_option
def rank(runs: Sequence[Path], metric: str, as_json: bool, plot: Path | None, strict: bool) -> None:
    """Rank methods over all boards of RUNS: average rank and critical difference.

    RUNS are folders of runs, or of boards that were made with --copy-records. A board is a scenario
    with its shots and backbone. Only methods with runs on every board are ranked.
    """
    from fsdil_bench.analysis.grouping import boards_to_rank
    from fsdil_bench.analysis.statistics import average_ranks
    from fsdil_bench.report.terminal_comparison import ranking_table

    boards = boards_to_rank(_records_of_boards(runs, strict))
    methods = {method for rows in boards.values() for method in rows}
    lacking = {name: sorted(methods - set(rows)) for name, rows in boards.items()}
    for name, absent in lacking.items():  # first: it explains why too few methods are left
        if absent:
            click.echo(f"{name} lacks {', '.join(absent)}")
    found = average_ranks(boards, metric)
    if as_json:
        print_json(
            asdict(found) | {"boards": [_board(boards[b], lacking[b]) for b in found.boards]}
        )
    else:
        console().print(ranking_table(found, metric))
    if plot:
        from fsdil_bench.report.plots.comparison import plot_ranks

        click.echo(plot_ranks(found, plot, metric))


def _board(rows: Mapping[str, Sequence[Record]], lacking: Sequence[str]) -> dict[str, Any]:
    """What names a board, and the methods that it lacks, as plain JSON types."""
    spec = next(iter(rows.values()))[0].spec
    return {"scenario": spec["scenario"], "backbone": spec["backbone"], "lacking": lacking}


def _records_of_boards(runs: Sequence[Path], strict: bool) -> list[Record]:
    """The records below folders of runs or of boards; leaderboards.json stands for its folder."""
    folders = [path.parent if path.name == _BOARDS_FILE else path for path in runs]
    records = read_records(folders, strict)
    if not records:
        made = [folder for folder in folders if (folder / _BOARDS_FILE).is_file()]
        raise RequestError(
            f"there is no complete run below {', '.join(map(str, folders))}",
            f"{made[0]} holds boards without records: make them again with --copy-records."
            if made
            else "Give a folder that holds runs.",
        )
    return records


def _runs_of(
    name: str, known: Sequence[Record], runs: Sequence[Path], scenario: str | None, strict: bool
) -> list[Record]:
    """The runs of a method among the `known` runs, or those below a folder of that name.

    Where a run is there both ordinary and sealed, the sealed one counts.
    """
    from fsdil_bench.analysis.grouping import distinct_runs

    records = [record for record in known if record.spec["method"] == name]
    if not records and Path(name).is_dir():
        records = read_records([name], strict)
        if not records:
            raise RequestError(f"there is no complete run below {name}", "Give a folder of runs.")
    if not records:
        where = ", ".join(map(str, runs))
        methods = sorted({record.spec["method"] for record in known})
        if not methods:
            place = f"below {where}" if where else "here"
            raise RequestError(f"there are no runs {place}", "Name the folder that holds them.")
        raise unknown("method or folder", name, methods, f"fsdil-bench leaderboard {where}")
    if scenario:
        records = [record for record in records if record.spec["scenario"] == scenario]
        if not records:
            raise RequestError(f"{name} has no run of {scenario}", "Run it first.")
    for what, option in (("scenario", "Choose one with --scenario."), ("method", "Name one.")):
        found = sorted({record.spec[what] for record in records})
        if len(found) > 1:
            raise RequestError(f"{name} has runs of several {what}s: {', '.join(found)}", option)
    return distinct_runs(records)
