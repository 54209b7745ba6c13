"""What `fsdil-bench sweep` prints: the table of a dry run, notes, and the summary at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from fsdil_bench.forecast.words import say_bytes, say_flops
from fsdil_bench.report.terminal import table
from fsdil_bench.sweeps.estimate import Forecast, Forecasts, Missing, charge_dict, say_seconds
from fsdil_bench.sweeps.plan import Cell, Plan
from fsdil_bench.sweeps.scheduler import counts
from fsdil_bench.sweeps.session import Summary
from fsdil_bench.sweeps.states import RunState, state_of

from .common import console, print_json


def show_plan(
    plan: Plan,
    rows: Sequence[Forecast],
    missing: Sequence[Missing],
    forecasts: Forecasts | None,
    jobs: int,
    as_json: bool,
) -> None:
    """The cells of a sweep, how far they are, and what they will cost."""
    if as_json:
        left_out = {
            "blocked": [
                {**run.to_dict(), "reason": why, "seconds": each.seconds,
                 **charge_dict(each.charge)}
                for (run, why), each in zip(plan.blocked, missing, strict=True)
            ],
            "planned": [run.to_dict() for run in plan.planned],
            "total": _total_numbers(rows, missing, forecasts),
        }  # fmt: skip
        print_json({"cells": [row.to_dict() for row in rows]} | left_out)
        return
    if rows:
        orders = any(row.cell.order_number is not None for row in rows)
        lines = [
            [row.cell.request.method, row.cell.request.scenario, row.cell.request.seed,
             *([_say_number(row.cell)] if orders else []),
             _say_state(row.state, row.cell.domains), say_seconds(row.seconds) if row.open else "",
             row.by if row.open else ""]
            for row in rows
        ]  # fmt: skip
        order = ["order"] if orders else []
        heads = ["method", "scenario", "seed", *order, "state", "cost", "by"]
        console().print(table(heads, lines))
        for line in order_lines([row.cell for row in rows]):
            click.echo(line)
        click.echo(_total(rows, jobs))
    else:
        click.echo("There is nothing that can be run here.")
    for note in notes(plan):
        click.echo(note)
    if forecasts is not None:
        for line in _outlook(rows, missing, forecasts):
            click.echo(line)


def _total_numbers(
    rows: Sequence[Forecast], missing: Sequence[Missing], forecasts: Forecasts | None
) -> dict[str, Any]:
    """All runs that are left, also those that cannot be made here, as plain JSON types."""
    left: list[Forecast | Missing] = [*(row for row in rows if row.open), *missing]
    charges = [each.charge for each in left if each.charge is not None]
    return {
        "runs": len(left),
        "hardware": forecasts.forecaster.on if forecasts is not None else None,
        "seconds": sum(each.seconds for each in left if each.seconds is not None),
        "by_records": sum(row.by == "records" for row in rows if row.open),
        "by_forecast": len(charges),
        "unknown": sum(each.seconds is None for each in left),
        "flops": round(sum(each.flops for each in charges)),
        "images_forward": round(sum(each.images for each in charges)),
        "peak_memory_bytes": round(max((each.memory for each in charges), default=0)),
    }


def _outlook(
    rows: Sequence[Forecast], missing: Sequence[Missing], forecasts: Forecasts
) -> list[str]:
    """What forecasts say of all runs together; nothing if there was no need of any."""
    numbers = _total_numbers(rows, missing, forecasts)
    lines = [f"no forecast: {problem}" for problem in forecasts.problems]
    if not numbers["by_forecast"]:
        return lines
    parts = {"records": numbers["by_records"], "forecast": numbers["by_forecast"]}
    known = ", ".join(f"{number} by {name}" for name, number in parts.items() if number)
    lines.append(
        f"forecast: {say_flops(numbers['flops'])}, {numbers['images_forward']:,.0f} images through "
        f"the tower, at most {say_bytes(numbers['peak_memory_bytes'])} of memory"
    )
    unknown = f", and {numbers['unknown']} of unknown cost" if numbers["unknown"] else ""
    runs = numbers["runs"] - numbers["unknown"]
    return [
        *lines,
        f"{runs} runs ({known}){unknown}",
        f"{runs} runs, about {say_seconds(numbers['seconds'])} on {forecasts.article}",
    ]


def _say_number(cell: Cell) -> str:
    return "" if cell.order_number is None else str(cell.order_number)


def order_lines(cells: Sequence[Cell]) -> list[str]:
    """What the numbers of orders stand for, as `fsdil-bench run --order` takes them."""
    known = {
        (cell.request.scenario.dataset, cell.request.scenario.variant, cell.order_number): cell
        for cell in cells
        if cell.order_number is not None
    }
    return [
        f"order {number} of {dataset}{f'@{variant}' if variant else ''}: "
        f"{','.join(cell.request.order)}"
        for (dataset, variant, number), cell in known.items()
    ]


def _total(rows: Sequence[Forecast], jobs: int) -> str:
    names = [row.state.name for row in rows]
    parts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    costs = [row.seconds for row in rows if row.open]
    known = [cost for cost in costs if cost is not None]
    left = f"{say_seconds(sum(known) / jobs)}, {jobs} at a time" if known else "unknown"
    if not costs:
        left = "nothing"
    unknown = len(costs) - len(known)
    rest = f", and {unknown} runs of unknown cost" if known and unknown else ""
    return f"{len(rows)} runs: {parts}. Left: {left}{rest}."


def notes(plan: Plan) -> list[str]:
    """Runs that are not possible here, and earlier ones with a different number of threads."""
    lines = []
    methods = [run.request.method for run in plan.planned]
    if methods:
        named = ", ".join(f"{name} ({methods.count(name)})" for name in dict.fromkeys(methods))
        lines.append(f"planned, but provided by no plugin yet (cells): {named}")
    reasons = [why for _, why in plan.blocked]
    for why in dict.fromkeys(reasons):
        lines.append(f"{reasons.count(why)} cells cannot be run here: {why}")
    return lines + _thread_notes(plan)


def _thread_notes(plan: Plan) -> list[str]:
    """Sums on a different number of threads differ in their last bits: a user should know."""
    records = [(cell, state_of(cell.folder).record) for cell in plan.cells]
    pairs = [
        (record.provenance["threads"], cell.resources.cpus)
        for cell, record in records
        if record and record.provenance.get("threads") not in (None, cell.resources.cpus)
    ]
    return [
        f"{pairs.count((had, gives))} complete runs were made with {had} threads, this sweep gives "
        f"{gives}: sums may differ in their last bits (--threads {had} avoids this)"
        for had, gives in dict.fromkeys(pairs)
    ]


def _say_state(state: RunState, domains: int) -> str:
    if state.name == "half-done":
        return f"half-done ({state.domains} of {domains} domains)"
    if state.name == "failed":
        return f"failed before: {state.why}"
    return f"{state.name}: {state.why}" if state.why else state.name


def show_summary(summary: Summary) -> None:
    """What is complete, what failed and why, and what to do next."""
    for status in summary.board:
        if status.name in ("failed", "other version"):
            click.secho(f"{status.cell}: {status.name}", fg="red", nl=False)
            click.echo(f": {status.reason}")
            if status.remedy:
                click.echo(f"  {status.remedy}")
            if status.log is not None and status.log.exists():
                click.echo(f"  log: {status.log}")
    parts = ", ".join(f"{number} {name}" for name, number in counts(summary.board).items())
    click.echo(f"{parts or 'nothing to run'} in {say_seconds(summary.seconds)}")
    _show_orders(summary)
    if summary.interrupted:
        click.echo("interrupted; the same command resumes where it stopped")
    elif summary.exit_code:
        click.echo("the same command tries again what is not complete")


def _show_orders(summary: Summary) -> None:
    """Mean and spread of the complete runs, where a sweep has several orders of domains."""
    from fsdil_bench.analysis.orders import make_order_boards
    from fsdil_bench.report.leaderboards.orders import terminal_table

    cells = [status.cell for status in summary.board if status.cell.order_number is not None]
    records = [record for cell in cells if (record := state_of(cell.folder).record)]
    for board in make_order_boards(records):
        console().print(terminal_table(board))
        for number, order in enumerate(board.orders):
            click.echo(f"order {number}: {','.join(order)}")
