"""`fsdil-bench show`: a finished run in the terminal or as a figure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RequestError

from . import names
from .common import (
    console,
    debug_option,
    figure_file,
    json_option,
    list_option,
    names_in,
    open_registry,
    plugin_option,
    print_json,
    read_records,
    strict_option,
    warn_of_verdict,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fsdil_bench.records.record import Record

#: Figures with a line for each method.
_OF_METHODS = ("forgetting", "shots")


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench show runs/drawn-1shot/ncm/seed0-*\n"
    "  fsdil-bench show runs/drawn-1shot/cvlc --plot embeddings --out map.png\n"
    "  fsdil-bench show runs/drawn-1shot --plot cost --out cost.svg\n"
    "  fsdil-bench show runs/drawn-*shot --plot shots --methods slda,ncm --out shots.svg"
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@json_option("Print the record and its evidence as JSON; with --plot, the file of the figure.")
@click.option(
    "--plot",
    type=click.Choice(["matrix", "curves", "embeddings", "cost", "forgetting", "shots"]),
    help="Draw a figure instead; `cost` (accuracy against it), `forgetting` and `shots` compare"
    " several runs.",
)
@list_option("--methods", help="With --plot forgetting and shots: these instead of the best ten.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=figure_file,
    help="File of the figure (.png, .svg or .pdf); by default a .png beside the record.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Where the images are, for --plot.")
@click.option(
    "--backbone", "-b", default="", help="Where files are: MODEL:path, CONFIG.json:path.",
    shell_complete=names.backbones,
)  # fmt: skip
@click.option("--names", type=click.Path(path_type=Path), help="The run's file of class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="The run's file of synonyms.")
@click.option("--device", default="", help="Default: the record's, if this machine has it.")
@strict_option
@plugin_option
@debug_option
def show(
    runs: Sequence[Path],
    as_json: bool,
    plot: str | None,
    methods: str,
    out: Path | None,
    strict: bool,
    plugins: Sequence[str],
    **request: Any,
) -> None:
    """Show a finished run: matrix, scores, evidence, curves, diagnostics, cost, provenance.

    RUN is a run's folder, or a folder below which there is exactly one run; for a figure of several
    runs, folders with as many as you like.
    """
    if methods and plot not in _OF_METHODS:
        raise RequestError(
            "--methods is for figures of several methods", "Add --plot forgetting or shots."
        )
    if plot:
        chosen = names_in(methods)
        figure = _draw(plot, runs, out, strict, chosen, plugins, request)
        if as_json:
            print_json({"figure": figure})
        else:
            click.echo(figure)
        return
    if out:
        raise RequestError("--out is the file of a figure", "Say with --plot which one to draw.")
    from fsdil_bench.analysis.evidence import evidence_of

    record = _one_record(runs, strict)
    if as_json:
        print_json(json.loads(record.to_json()) | {"evidence": evidence_of(record)})
        return
    from rich.text import Text

    from fsdil_bench.report import terminal
    from fsdil_bench.report.where_it_stands import where_it_stands

    parts: list[RenderableType] = [terminal.summary([record])]
    if line := where_it_stands([record]):
        parts.append(Text(line))
    parts += [terminal.evidence(record), terminal.curves(record)]
    if record.oracle_matrix:
        title = "accuracy (%) with oracle domain"
        parts.append(terminal.matrix(record.oracle_matrix, record.domain_names, title))
    if confusion := terminal.routing(record):
        parts.append(confusion)
    if record.diagnostics:
        parts.append(terminal.diagnostics(record))
    parts += [terminal.cost(record), terminal.provenance(record)]
    for part in parts:
        console().print(part)


def _draw(
    plot: str,
    runs: Sequence[Path],
    out: Path | None,
    strict: bool,
    methods: Sequence[str],
    plugins: Sequence[str],
    request: dict[str, Any],
) -> Path:
    """Draw the figure that was asked for."""
    if plot in _OF_METHODS:
        return _draw_methods(plot, runs, out or runs[0] / f"{plot}.png", strict, methods)
    from fsdil_bench.report.plots.cost import plot_cost, plot_tradeoff
    from fsdil_bench.report.plots.curves import plot_curves
    from fsdil_bench.report.plots.matrix import plot_matrix

    if plot == "cost" and len(records := read_records(runs, strict)) > 1:
        return plot_tradeoff(records, out or runs[0] / "cost.png")
    record = _one_record(runs, strict)
    assert record.folder is not None
    file = out or record.folder / f"{plot}.png"
    if plot == "embeddings":
        from fsdil_bench.report.plots.embeddings import plot_embeddings

        return plot_embeddings(record, file, open_registry(plugins), **request)
    return {"matrix": plot_matrix, "curves": plot_curves, "cost": plot_cost}[plot](record, file)


def _draw_methods(
    plot: str, runs: Sequence[Path], file: Path, strict: bool, methods: Sequence[str]
) -> Path:
    """Draw a figure with a line for each method."""
    from fsdil_bench.report.plots.forgetting import plot_forgetting
    from fsdil_bench.report.plots.shots import plot_shots

    records = read_records(runs, strict)
    if not records:
        raise RequestError(
            f"there is no complete run below {', '.join(map(str, runs))}",
            "Give folders that have runs.",
        )
    if plot == "shots":
        return plot_shots(records, file, methods=methods)
    return plot_forgetting(records, file, methods)


def _one_record(runs: Sequence[Path], strict: bool) -> Record:
    from fsdil_bench.records.record import Record

    first = runs[0]
    if len(runs) == 1 and (
        (first / "spec.json").is_file() or os.path.lexists(first / "record.json")
    ):
        record = Record.load(first)
        warn_of_verdict(record)
        return record
    records = read_records(runs, strict)
    if len(records) != 1:
        found = "\n".join(f"  {record.folder}" for record in records[:10])
        raise RequestError(
            f"there are {len(records)} complete runs below {', '.join(map(str, runs))}",
            f"Name one of them:\n{found}" if records else "Give the folder of a run.",
        )
    return records[0]
