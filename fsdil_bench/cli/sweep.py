"""`fsdil-bench sweep`: many runs, in parallel, that survive crashes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RequestError

from . import names
from .common import (
    debug_option,
    json_option,
    list_option,
    names_in,
    open_registry,
    plugin_option,
    print_json,
    run_progress,
)

if TYPE_CHECKING:
    from fsdil_bench.plugins.registry import Registry
    from fsdil_bench.sweeps.estimate import Costs, Forecasts
    from fsdil_bench.sweeps.plan import Plan
    from fsdil_bench.sweeps.request import Selection, Sweep
    from fsdil_bench.sweeps.session import Summary


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench sweep --methods ncm,slda --scenarios drawn-1shot --seeds 0-2\n"
    "  fsdil-bench sweep -m 'cvlc*' -s drawn --shots 1,2,4,8 --jobs 2 --dry-run\n"
    "  fsdil-bench sweep -m ncm,slda -s drawn-1shot --seeds 0-2 --orders 5\n"
    "  fsdil-bench sweep sweeps/embedded.toml --jobs 2\n"
    "  fsdil-bench sweep sweeps/paper.toml --dry-run --on rtx-4090\n"
    "\n"
    "The same command again runs what is missing or has failed. With a FILE, --methods,\n"
    "--scenarios, --shots and --seeds choose among its runs. Exit codes: 0 all complete, 1 some\n"
    "are not, 130 interrupted."
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@list_option(
    "--methods", "-m", help="Comma-separated; patterns such as 'cvlc*'.",
    shell_complete=names.several(names.methods),
)  # fmt: skip
@list_option(
    "--scenarios", "-s", help="Ids, or data sets if --shots is given.",
    shell_complete=names.several(names.scenario_names, names.scenarios),
)  # fmt: skip
@list_option("--shots", help="For instance 1,2,4,8.")
@list_option("--seeds", help="0,1,2 or 0-2.  [default: 0]")
@click.option(
    "--orders", type=click.IntRange(1), metavar="N",
    help="Orders of domains: the scenario's own, and N - 1 permutations that are always the same.",
)  # fmt: skip
@click.option("--free-base", is_flag=True, help="With --orders, the base domain changes too.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="An option of every method; METHOD.KEY=VALUE for one.",
)  # fmt: skip
@click.option("--jobs", "-j", type=click.IntRange(1), help="Runs at a time.  [default: 1]")
@click.option(
    "--threads", type=click.IntRange(1),
    help="Threads of each run.  [default: the cores, divided by --jobs]",
)  # fmt: skip
@click.option(
    "--launcher", help="See `fsdil-bench list launchers`.  [default: local]",
    shell_complete=names.launchers,
)  # fmt: skip
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
@click.option(
    "--track", multiple=True, metavar="NAME", shell_complete=names.trackers,
    help="Also log the runs with a tracker, such as mlflow; may be given several times.",
)  # fmt: skip
@click.option("--out", help="Folder for run records.  [default: runs]", shell_complete=names.files)
@click.option(
    "--costs-from", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Estimate costs from the records below this folder, too; may be given several times.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the cells, their state and cost; run nothing.")
@click.option(
    "--on", "hardware", metavar="HARDWARE",
    help="With --dry-run, forecast the cost on this hardware, such as rtx-4090: see `cost --help`. "
    "`records` forecasts nothing.  [default: this machine, where there are no records]",
)  # fmt: skip
@json_option("Print a summary as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def sweep(
    file: Path | None,
    methods: str,
    scenarios: str,
    shots: str,
    seeds: str,
    orders: int | None,
    free_base: bool,
    settings: Sequence[str],
    launcher_settings: Sequence[str],
    track: Sequence[str],
    costs_from: Sequence[Path],
    dry_run: bool,
    hardware: str | None,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **given: Any,
) -> None:
    """Run all cells of a table of methods, scenarios, shots, seeds and orders of domains.

    FILE is a TOML file (docs/sweeps.md). Without one, --methods and --scenarios say what to run.
    """
    from dataclasses import replace

    from fsdil_bench.plugins.options import parse_assignments
    from fsdil_bench.sweeps.sweep_file import plugin_files, read_sweep

    registry = open_registry([*plugins, *(plugin_files(file) if file else ())])
    chosen = {name: value for name, value in given.items() if value is not None}
    if track:
        chosen["track"] = ",".join(track)
    selection = _selection(methods, scenarios, shots, seeds, settings)
    selection = replace(selection, orders=orders, free_base=free_base)
    asked = read_sweep(file, registry, selection, chosen)
    options = {**asked.launcher_options, **parse_assignments(launcher_settings)}
    asked = replace(asked, launcher_options=options)
    _check_launcher(asked, registry)
    if hardware is not None and not dry_run:
        raise RequestError("--on is for forecasts", "Add --dry-run, or leave it out.")
    forecasts = _forecasts(hardware, registry, quiet) if dry_run else None

    from fsdil_bench.sweeps.estimate import Costs, forecast
    from fsdil_bench.sweeps.plan import make_plan

    from .sweep_report import show_plan, show_summary

    plan = make_plan(asked, registry)
    out = Path(asked.settings.out)
    # Records tell how long runs took here, which says little about other hardware.
    named = forecasts is not None and forecasts.forecaster.on != "this-machine"
    costs = Costs() if named else Costs.of_records([out, *costs_from])
    if dry_run:
        rows, missing = forecast(plan, costs, forecasts)
        show_plan(plan, rows, missing, forecasts, asked.settings.jobs or 1, as_json)
        return
    summary = _run(asked, plan, costs, registry, quiet)
    if as_json:
        print_json(summary.to_dict())
    else:
        show_summary(summary)
    sys.exit(summary.exit_code)


def _forecasts(hardware: str | None, registry: Registry, quiet: bool) -> Forecasts | None:
    if hardware == "records":
        return None
    from fsdil_bench.forecast.forecaster import Forecaster
    from fsdil_bench.forecast.hardware import THIS_MACHINE
    from fsdil_bench.sweeps.estimate import Forecasts

    say = run_progress(quiet).say
    return Forecasts(Forecaster(registry, hardware or THIS_MACHINE, say))


def _selection(
    methods: str, scenarios: str, shots: str, seeds: str, settings: Sequence[str]
) -> Selection:
    from fsdil_bench.sweeps.request import Selection
    from fsdil_bench.sweeps.values import number_list, seed_list

    return Selection(
        tuple(names_in(methods)),
        tuple(names_in(scenarios)),
        tuple(number_list("--shots", shots, least=1)) if shots else (),
        tuple(seed_list("--seeds", seeds)) if seeds else (),
        tuple(settings),
    )


def _check_launcher(sweep: Sweep, registry: Registry) -> None:
    from fsdil_bench.sweeps.session import launcher_options

    launcher_options(registry.launcher(sweep.settings.launcher), sweep.launcher_options)


def _run(
    sweep: Sweep,
    plan: Plan,
    costs: Costs,
    registry: Registry,
    quiet: bool,
) -> Summary:
    from rich.console import Console

    from fsdil_bench.sweeps.display import Lines, Live, Silent
    from fsdil_bench.sweeps.session import run_sweep

    from .sweep_report import notes

    def say(text: str) -> None:
        click.echo(text, err=True)

    if quiet:
        return run_sweep(sweep, plan, registry, Silent())
    for note in notes(plan):
        say(note)
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        return run_sweep(sweep, plan, registry, Lines(len(plan.cells), say))
    with Live(len(plan.cells), terminal, costs, sweep.settings.jobs or 1) as live:
        return run_sweep(sweep, plan, registry, live)
