"""`fsdil-bench sweep`: many runs, in parallel, that survive crashes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import console, debug_option, open_registry, plugin_option

if TYPE_CHECKING:
    from ..plugins import Registry
    from ..sweeps.estimate import Costs
    from ..sweeps.plan import Plan
    from ..sweeps.session import Summary
    from ..sweeps.states import RunState
    from ..sweeps.sweep_file import Selection, Settings, Sweep


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench sweep --methods ncm,slda --scenarios drawn-1shot --seeds 0-2\n"
    "  fsdil-bench sweep -m 'cvlc*' -s drawn --shots 1,2,4,8 --jobs 2 --dry-run\n"
    "  fsdil-bench sweep sweeps/drawn.toml --jobs 2\n"
    "\n"
    "The same command again runs what is missing or has failed. With a FILE, --methods,\n"
    "--scenarios, --shots and --seeds choose among its cells. Exit codes: 0 all complete, 1 some\n"
    "are not, 130 interrupted."
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--methods", "-m", default="", help="Comma-separated; patterns such as 'cvlc*'.")
@click.option("--scenarios", "-s", default="", help="Ids, or data sets if --shots is given.")
@click.option("--shots", default="", help="For instance 1,2,4,8.")
@click.option("--seeds", default="", help="0,1,2 or 0-2.  [default: 0]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="An option of every method; METHOD.KEY=VALUE for one.",
)  # fmt: skip
@click.option("--jobs", "-j", type=click.IntRange(1), help="Runs at a time.  [default: 1]")
@click.option(
    "--threads", type=click.IntRange(1),
    help="Threads of each run.  [default: the cores, divided by --jobs]",
)  # fmt: skip
@click.option("--launcher", help="See `fsdil-bench list launchers`.  [default: local]")
@click.option(
    "--launcher-set", "launcher_settings", multiple=True, metavar="KEY=VALUE",
    help="A launcher's option.",
)  # fmt: skip
@click.option(
    "--retries", type=click.IntRange(0), help="Further tries after a crash.  [default: 1]"
)
@click.option("--time-limit", metavar="TIME", help="Of each run: seconds, or 90m, 2h.")
@click.option(
    "--reuse-base", is_flag=True, default=None,
    help="Train the base domain once for all numbers of shots.",
)  # fmt: skip
@click.option("--out", help="Folder for run records.  [default: runs]")
@click.option("--dry-run", is_flag=True, help="Show the cells, their state and cost; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def sweep(
    file: Path | None,
    methods: str,
    scenarios: str,
    shots: str,
    seeds: str,
    settings: Sequence[str],
    launcher_settings: Sequence[str],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **given: Any,
) -> None:
    """Run all cells of a table of methods, scenarios, shots and seeds.

    FILE is a TOML file (docs/sweeps.md). Without one, --methods and --scenarios say what to run.
    """
    from dataclasses import replace

    from ..config import parse_assignments
    from ..sweeps.sweep_file import plugin_files, read_sweep

    registry = open_registry([*plugins, *(plugin_files(file) if file else ())])
    chosen = {name: value for name, value in given.items() if value is not None}
    asked = read_sweep(
        file, registry, _selection(methods, scenarios, shots, seeds, settings), chosen
    )
    options = {**asked.launcher_options, **parse_assignments(launcher_settings)}
    asked = replace(asked, launcher_options=options)
    _check_launcher(asked, registry)

    from ..sweeps.estimate import Costs
    from ..sweeps.plan import make_plan
    from ..sweeps.states import state_of

    plan = make_plan(asked, registry)
    states = [state_of(cell.folder) for cell in plan.cells]
    out = Path(asked.settings.out)
    costs = Costs.of_records([out] if out.exists() else [])
    if dry_run:
        _show_plan(plan, states, costs, asked.settings, as_json)
        return
    summary = _run(asked, plan, states, costs, registry, quiet)
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=1))
    else:
        _show_summary(summary, file)
    sys.exit(summary.exit_code)


def _selection(
    methods: str, scenarios: str, shots: str, seeds: str, settings: Sequence[str]
) -> Selection:
    from ..sweeps.sweep_file import Selection, number_list

    return Selection(
        tuple(name.strip() for name in methods.split(",") if name.strip()),
        tuple(name.strip() for name in scenarios.split(",") if name.strip()),
        tuple(number_list("--shots", shots)) if shots else (),
        tuple(number_list("--seeds", seeds)) if seeds else (),
        tuple(settings),
    )


def _check_launcher(sweep: Sweep, registry: Registry) -> None:
    from ..sweeps.session import launcher_options

    launcher_options(registry.launcher(sweep.settings.launcher), sweep.launcher_options)


def _run(
    sweep: Sweep,
    plan: Plan,
    states: list[RunState],
    costs: Costs,
    registry: Registry,
    quiet: bool,
) -> Summary:
    from rich.console import Console

    from ..sweeps.plan import thread_notes
    from ..sweeps.session import run_sweep
    from ..sweeps.watching import Lines, Live, Silent

    def say(text: str) -> None:
        click.echo(text, err=True)

    done = sum(state.name == "done" for state in states)
    if not quiet:
        say(f"{len(plan.cells)} runs, {done} of them complete; {sweep.settings.launcher} launcher")
        for note in [*thread_notes(plan, states), *_left_out(plan)]:
            say(note)
    terminal = Console(stderr=True)
    if quiet:
        return run_sweep(sweep, plan, registry, Silent())
    if not terminal.is_terminal:
        return run_sweep(sweep, plan, registry, Lines(len(plan.cells), say))
    with Live(len(plan.cells), terminal, costs, sweep.settings.jobs or 1) as live:
        return run_sweep(sweep, plan, registry, live)


def _left_out(plan: Plan) -> list[str]:
    """What is asked for and cannot be run, by method and by reason."""
    lines = []
    methods = [wish.method for wish in plan.planned]
    if methods:
        named = ", ".join(f"{name} ({methods.count(name)})" for name in dict.fromkeys(methods))
        lines.append(f"planned, but provided by no plugin yet: {named}")
    reasons = [why for _, why in plan.blocked]
    for why in dict.fromkeys(reasons):
        lines.append(f"{reasons.count(why)} cells cannot be run here: {why}")
    return lines


def _show_plan(
    plan: Plan, states: list[RunState], costs: Costs, settings: Settings, as_json: bool
) -> None:
    from ..sweeps.estimate import say_seconds

    rows = []
    known, unknown = 0.0, 0
    for cell, state in zip(plan.cells, states, strict=True):
        left = 0.0 if state.name in ("done", "other version") else 1.0
        seconds = costs.seconds(cell.method, cell.scenario)
        if left and state.domains:
            left -= state.domains / cell.domains
        cost = None if seconds is None else seconds * left
        known += cost or 0.0
        unknown += bool(left) and cost is None
        rows.append((cell, state, cost if left else 0.0))
    if as_json:
        cells = [
            {"key": cell.key, "method": cell.method, "scenario": cell.scenario, "seed": cell.seed,
             "state": state.name, "domains": state.domains, "why": state.why, "seconds": cost}
            for cell, state, cost in rows
        ]  # fmt: skip
        blocked = [{"cell": str(wish), "reason": why} for wish, why in plan.blocked]
        planned = [str(wish) for wish in plan.planned]
        click.echo(json.dumps({"cells": cells, "blocked": blocked, "planned": planned}, indent=1))
        return
    from ..sweeps.plan import thread_notes
    from ..tables import table

    columns = ["method", "scenario", "seed", "state", "cost"]
    lines = [
        [cell.method, cell.scenario, cell.seed, _say_state(state, cell.domains),
         "" if cost == 0.0 else say_seconds(cost)]
        for cell, state, cost in rows
    ]  # fmt: skip
    console().print(table(columns, lines))
    names = [state.name for state in states]
    parts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    jobs = settings.jobs or 1
    total = (
        f"{say_seconds(known / jobs)} at {jobs} at a time" if known or not unknown else "unknown"
    )
    rest = f", {unknown} of unknown cost" if unknown and known else ""
    click.echo(f"{len(rows)} runs: {parts}. Left: {total}{rest}.")
    for note in [*thread_notes(plan, states), *_left_out(plan)]:
        click.echo(note)


def _say_state(state: RunState, domains: int) -> str:
    if state.name == "half-done":
        return f"half-done ({state.domains} of {domains} domains)"
    if state.name == "failed":
        return f"failed before: {state.why}"
    return f"{state.name}: {state.why}" if state.why else state.name


def _show_summary(summary: Summary, file: Path | None) -> None:
    from ..sweeps.estimate import say_seconds
    from ..sweeps.scheduler import counts

    for status in summary.board:
        if status.name in ("failed", "other version"):
            click.secho(f"{status.cell}: {status.name}", fg="red", nl=False)
            click.echo(f": {status.reason}")
            if status.remedy:
                click.echo(f"  {status.remedy}")
            if status.log is not None:
                click.echo(f"  log: {status.log}")
    for line in _left_out(summary.plan):
        click.echo(line)
    parts = ", ".join(f"{number} {name}" for name, number in counts(summary.board).items())
    click.echo(f"{parts or 'nothing to run'} in {say_seconds(summary.seconds)}")
    if summary.interrupted:
        click.echo("interrupted; the same command goes on where it stopped")
    elif summary.exit_code:
        click.echo("the same command tries again what is not complete")
