"""`fsdil-bench run`: a method on a scenario, for one seed or several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from .common import (
    console,
    debug_option,
    open_registry,
    plugin_option,
    run_progress,
)
from .run_options import parse_seeds, run_arguments, run_options


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench run --method ncm --scenario drawn-1shot\n"
    "  fsdil-bench run --method ncm --scenario drawn-4shot --seeds 0-2 --set mode=balanced\n"
    "  fsdil-bench run --method slda --scenario folder-8shot --data ~/pacs --base photo\n"
    "\n"
    "Runs are kept below --out. The same command again goes on where a killed run stopped and\n"
    "does not repeat what is done."
)
@click.option("--method", "-m", required=True, help="See `fsdil-bench list methods`.")
@click.option("--scenario", "-s", required=True, help="<dataset>-<K>shot, e.g. drawn-1shot.")
@click.option("--seed", type=int, help="Seed of everything random in the run.  [default: 0]")
@click.option("--seeds", help="Several seeds: 0,1,2 or 0-2.")
@run_options
@click.option("--resume/--fresh", default=True, help="Go on with what is there, or start over.")
@click.option("--keep-checkpoints", is_flag=True, help="Keep the state after every domain.")
@click.option("--reuse-base", is_flag=True, help="Share the base domain with runs of other K.")
@click.option(
    "--sealed", is_flag=True,
    help="Learn and predict in separate processes that share the method's state alone.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def run(
    method: str,
    scenario: str,
    seed: int | None,
    seeds: str | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Run a method on a scenario, for one seed or several."""
    from fsdil_bench.runs.runner import run as run_once

    registry = open_registry(plugins)
    arguments = run_arguments(**options)
    progress = run_progress(quiet)
    records = []
    for each in parse_seeds(seed, seeds):
        progress.say(f"{method} on {scenario}, seed {each}")
        record = run_once(
            method,
            scenario,
            seed=each,
            fresh=not resume,
            registry=registry,
            progress=progress,
            **arguments,
        )
        records.append(record)
    if as_json:
        click.echo(json.dumps([json.loads(record.to_json()) for record in records], indent=1))
        return
    from fsdil_bench.report.terminal import summary

    console().print(summary(records))
    for record in records:
        click.echo(f"record: {record.folder}")
    click.echo(f"more:   fsdil-bench show {records[-1].folder}")
