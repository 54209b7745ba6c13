"""`fsdil-bench run`: a method on a scenario, for one seed or several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from . import names
from .common import (
    console,
    debug_option,
    json_option,
    list_option,
    open_registry,
    plugin_option,
    print_json,
    run_progress,
)
from .run_options import parse_seeds, run_options, run_request


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench run --method ncm --scenario drawn-1shot\n"
    "  fsdil-bench run --method ncm --scenario drawn-4shot --seeds 0-2 --set mode=balanced\n"
    "  fsdil-bench run --method slda --scenario folder-8shot --data ~/pacs --base photo\n"
    "\n"
    "Runs are kept below --out. The same command again resumes a killed run where it stopped and\n"
    "does not repeat what is done."
)
@click.option(
    "--method", "-m", required=True, help="See `fsdil-bench list methods`.",
    shell_complete=names.methods,
)  # fmt: skip
@click.option(
    "--scenario", "-s", required=True, help="<dataset>-<K>shot, e.g. drawn-1shot.",
    shell_complete=names.scenarios,
)  # fmt: skip
@click.option("--seed", type=int, help="Seed of everything random in the run.  [default: 0]")
@list_option("--seeds", help="Several seeds: 0,1,2 or 0-2.")
@run_options
@click.option("--resume/--fresh", default=True, help="Resume an unfinished run, or start over.")
@json_option("Print the records as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def run(
    method: str,
    scenario: str,
    seed: int | None,
    seeds: str,
    out: Path,
    resume: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Run a method on a scenario, for one seed or several."""
    from fsdil_bench.runs.job import prepare
    from fsdil_bench.runs.run_folder import RunFolder
    from fsdil_bench.runs.runner import run_job

    registry = open_registry(plugins, sealed=options["sealed"])
    asked = run_request(method=method, scenario=scenario, **options)
    progress = run_progress(quiet)
    records = []
    for each in parse_seeds(seed, seeds):
        request = replace(asked, seed=each)
        progress.say(str(request))
        job = prepare(request, registry)
        if quiet and resume and RunFolder(out / job.place).complete:
            click.echo(f"already done: {out / job.place} (--fresh runs it again)", err=True)
        records.append(run_job(job, out, fresh=not resume, progress=progress))
    if as_json:
        print_json([json.loads(record.to_json()) for record in records])
        return
    from fsdil_bench.report.terminal import summary
    from fsdil_bench.report.where_it_stands import where_it_stands

    console().print(summary(records))
    if not quiet and (line := where_it_stands(records)):
        click.echo(line)
    for record in records:
        click.echo(f"record: {record.folder}")
    click.echo(f"more:   fsdil-bench show {records[-1].folder}")
