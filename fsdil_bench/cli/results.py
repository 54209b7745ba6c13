"""`fsdil-bench show`: a finished run in the terminal or as a figure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RequestError

from .common import (
    console,
    debug_option,
    figure_file,
    open_registry,
    plugin_option,
    read_records,
    strict_option,
    warn_of_verdict,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fsdil_bench.records.record import Record


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench show runs/drawn-1shot/ncm/seed0-*\n"
    "  fsdil-bench show runs/drawn-1shot/cvlc --plot embeddings --out map.png\n"
    "  fsdil-bench show runs/drawn-1shot --plot cost --out cost.svg"
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the record and its evidence as JSON.")
@click.option(
    "--plot",
    type=click.Choice(["matrix", "curves", "embeddings", "cost"]),
    help="Draw a figure instead; `cost` of several runs shows accuracy against cost.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=figure_file,
    help="File of the figure (.png, .svg or .pdf); by default a .png beside the record.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Where the images are, for --plot.")
@click.option("--backbone", "-b", default="", help="For weights from a file: MODEL:path/to/file.")
@click.option("--names", type=click.Path(path_type=Path), help="The run's file of class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="The run's file of synonyms.")
@click.option("--device", default="", help="Default: the record's, if this machine has it.")
@strict_option
@plugin_option
@debug_option
def show(
    run: Path,
    as_json: bool,
    plot: str | None,
    out: Path | None,
    strict: bool,
    plugins: Sequence[str],
    **request: Any,
) -> None:
    """Show a finished run: matrix, scores, evidence, curves, diagnostics, cost, provenance.

    RUN is a run's folder, or a folder below which there is exactly one run.
    """
    if plot:
        click.echo(_draw(plot, run, out, strict, plugins, request))
        return
    if out:
        raise RequestError("--out is the file of a figure", "Say with --plot which one to draw.")
    from fsdil_bench.analysis.evidence import evidence_of

    record = _one_record(run, strict)
    if as_json:
        values = json.loads(record.to_json()) | {"evidence": evidence_of(record)}
        click.echo(json.dumps(values, indent=1, sort_keys=True))
        return
    from fsdil_bench.report import terminal

    parts: list[RenderableType] = [
        terminal.summary([record]), terminal.evidence(record), terminal.curves(record)
    ]  # fmt: skip
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
    run: Path,
    out: Path | None,
    strict: bool,
    plugins: Sequence[str],
    request: dict[str, Any],
) -> Path:
    """Draw the figure that was asked for."""
    from fsdil_bench.report.plots.cost import plot_cost, plot_tradeoff
    from fsdil_bench.report.plots.curves import plot_curves
    from fsdil_bench.report.plots.matrix import plot_matrix

    if plot == "cost" and len(records := read_records([run], strict)) > 1:
        return plot_tradeoff(records, out or run / "cost.png")
    record = _one_record(run, strict)
    assert record.folder is not None
    file = out or record.folder / f"{plot}.png"
    if plot == "embeddings":
        from fsdil_bench.report.plots.embeddings import plot_embeddings

        return plot_embeddings(record, file, open_registry(plugins), **request)
    return {"matrix": plot_matrix, "curves": plot_curves, "cost": plot_cost}[plot](record, file)


def _one_record(path: Path, strict: bool) -> Record:
    from fsdil_bench.records.record import Record

    if (path / "spec.json").is_file() or os.path.lexists(path / "record.json"):
        record = Record.load(path)
        warn_of_verdict(record)
        return record
    records = read_records([path], strict)
    if len(records) != 1:
        found = "\n".join(f"  {record.folder}" for record in records[:10])
        raise RequestError(
            f"there are {len(records)} complete runs below {path}",
            f"Name one of them:\n{found}" if records else "Give the folder of a run.",
        )
    return records[0]
