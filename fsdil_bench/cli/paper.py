"""`fsdil-bench paper`: what the CVLC paper reports, with measured numbers beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.records.metrics import METRICS

from .common import (
    console,
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
    read_records,
    strict_option,
)

if TYPE_CHECKING:
    from fsdil_bench.analysis.paper.reproduction import Reproduction
    from fsdil_bench.analysis.paper.results import Table
    from fsdil_bench.records.record import Record


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench paper --table core50 --metric 'AA*'\n"
    "  fsdil-bench paper runs --dataset domainnet\n"
    "\n"
    "A number is reproduced if the 95 % confidence interval of the difference contains zero.\n"
    "Numbers from different settings are not comparable (docs/paper.md)."
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--table", "table_name", help="cddb-hard, core50, domainnet, ablations or five-shot.")
@click.option("--dataset", help="cddb-hard, core50 or domainnet.")
@click.option("--metric", type=click.Choice(METRICS), help="Only this score.")
@click.option(
    "--all", "everything", is_flag=True, help="With RUNS: also list numbers that were not run."
)
@json_option()
@click.option("--markdown", is_flag=True, help="Print as Markdown.")
@strict_option
@plugin_option
@debug_option
def paper(
    runs: Sequence[Path],
    table_name: str | None,
    dataset: str | None,
    metric: str | None,
    everything: bool,
    as_json: bool,
    markdown: bool,
    strict: bool,
    plugins: Sequence[str],
) -> None:
    """Print the CVLC paper's tables, with the numbers that were measured in RUNS beside them."""
    chosen = _choose(table_name, dataset, metric)
    if runs:
        records = read_records(runs, strict)
        _print_measured(records, chosen, everything, as_json, markdown, plugins)
        return
    if as_json:
        print_json([asdict(cell) for table in chosen for cell in table.cells])
        return
    from fsdil_bench.analysis.paper import CITATION

    click.echo(f"{CITATION}. Percent, mean ± standard deviation over seeds, as reported\n")
    for table in chosen:
        _show(*_grid(table), f"{table.title} (--table {table.name})", markdown)
    for line in _only_by_authors(chosen):
        click.echo(line)


def _only_by_authors(chosen: Sequence[Table]) -> list[str]:
    """What to know about rows that are no methods here."""
    from fsdil_bench.analysis.paper.names import ONLY_BY_AUTHORS

    labels = {cell.label for table in chosen for cell in table.cells}
    return [
        f"{label}: nobody but its authors can run it; {found.why}. "
        f"The nearest method here is {found.nearest}, which is another one"
        for label, found in ONLY_BY_AUTHORS.items()
        if label in labels
    ]


def _choose(name: str | None, dataset: str | None, metric: str | None) -> list[Table]:
    """The tables with the cells that were asked for."""
    from fsdil_bench.analysis.paper import Table, tables

    everything = tables()
    for kind, wanted, known in (
        ("table", name, {table.name for table in everything}),
        ("data set", dataset, {cell.dataset for table in everything for cell in table.cells}),
    ):
        if wanted is not None and wanted not in known:
            raise unknown(kind, wanted, sorted(known))
    wanted_cells = [
        Table(
            table.name,
            table.title,
            tuple(
                cell
                for cell in table.cells
                if dataset in (None, cell.dataset) and metric in (None, cell.metric)
            ),
        )
        for table in everything
        if name in (None, table.name)
    ]
    found = [table for table in wanted_cells if table.cells]
    if not found:
        raise RequestError(
            "the paper has no such numbers", "AA* and FA* are in all tables but five-shot."
        )
    return found


def _grid(table: Table) -> tuple[list[str], list[list[str]]]:
    """Methods down, data sets, shots and scores across."""
    from fsdil_bench.analysis.paper.names import runnable_name

    several = len({cell.dataset for cell in table.cells}) > 1
    columns: dict[str, None] = {}
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for cell in table.cells:
        start = f"{cell.dataset} " if several else ""
        column = f"{start}{cell.shots}-shot {cell.metric}"
        columns[column] = None
        name = runnable_name(cell.label) or ("–" if cell.method else "")
        rows.setdefault((cell.label, name, cell.backbone), {})[column] = str(cell)
    body = [[*key, *(cells.get(column, "") for column in columns)] for key, cells in rows.items()]
    return ["in the paper", "here", "backbone", *columns], body


def _print_measured(
    records: Sequence[Record],
    chosen: Sequence[Table],
    everything: bool,
    as_json: bool,
    markdown: bool,
    plugins: Sequence[str],
) -> None:
    from fsdil_bench.analysis.grouping import distinct_runs, rows_of_all_boards
    from fsdil_bench.analysis.paper.reproduction import in_paper, reproductions

    cells = {cell for table in chosen for cell in table.cells}
    everywhere = reproductions(rows_of_all_boards(distinct_runs(records)), open_registry(plugins))
    found = [each for each in everywhere if each.reported in cells]
    if as_json:
        print_json([_plain(each) for each in found])
        return
    shown = [each for each in found if everything or each.seeds]
    if shown:
        _show(_COLUMNS, [_line(each) for each in shown], "", markdown)
    counts = Counter(str(each.verdict.case) for each in found)
    click.echo("; ".join(f"{count} {case}" for case, count in sorted(counts.items())))
    elsewhere = sum(not in_paper(record) for record in records)
    if elsewhere:
        click.echo(
            f"{elsewhere} of {len(records)} runs are on data sets that the paper does not use"
        )


_COLUMNS = [
    "table", "data set", "shots", "method", "score", "reported", "measured", "seeds", "difference",
    "verdict",
]  # fmt: skip


def _line(each: Reproduction) -> list[str]:
    cell, answer = each.reported, each.verdict
    measured = "–" if each.mean is None else f"{each.mean:.2f}"
    if each.low is not None and each.high is not None:
        measured += f" [{each.low:.2f}, {each.high:.2f}]"
    difference = "–" if answer.difference is None else f"{answer.difference:+.2f}"
    place = [cell.table, cell.dataset, str(cell.shots), cell.method, cell.metric]
    return [*place, str(cell), measured, str(each.seeds), difference, str(answer)]


def _plain(each: Reproduction) -> dict[str, Any]:
    measured = {"mean": each.mean, "low": each.low, "high": each.high, "seeds": each.seeds}
    return {
        "reported": asdict(each.reported),
        "measured": measured,
        "verdict": asdict(each.verdict),
    }


def _show(columns: list[str], rows: list[list[str]], title: str, markdown: bool) -> None:
    if not markdown:
        from fsdil_bench.report.terminal import table as terminal_table

        console().print(terminal_table(columns, rows, title))
        return
    from tabulate import tabulate

    if title:
        click.echo(f"### {title}\n")
    click.echo(tabulate(rows, columns, tablefmt="pipe", disable_numparse=True) + "\n")
