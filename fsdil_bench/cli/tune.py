"""`fsdil-bench tune`: choose an option of methods on a part of the base domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fsdil_bench.errors import RequestError

from . import names
from .common import (
    console,
    debug_option,
    json_option,
    list_option,
    names_in,
    open_registry,
    plugin_option,
    print_json,
    run_progress,
)
from .run_options import parse_seeds, run_options, run_request


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench tune l2p --scenario drawn-4shot\n"
    "  fsdil-bench tune coop s-prompts --scenario drawn-4shot --write choices.json\n"
    "  fsdil-bench tune ewc --scenario drawn-4shot --option strength --values 10,100,1000\n"
    "\n"
    "The candidates run on <scenario>@validation, which is made of the base domain's training\n"
    "images alone, unless the scenario brings domains of its own, as all embedded worlds do.\n"
    "No test image takes part. The same command again repeats nothing that is done.\n"
    "Nothing is set: give the value to `run` with --set, or write it into the method's presets."
)
@click.argument(
    "methods", nargs=-1, required=True, metavar="METHOD...", shell_complete=names.methods
)
@click.option(
    "--scenario", "-s", required=True, help="<dataset>-<K>shot, e.g. drawn-4shot.",
    shell_complete=names.scenarios,
)  # fmt: skip
@click.option("--option", "-k", default="lr", show_default=True, help="The option to choose.")
@click.option(
    "--values",
    help="Comma-separated.  [default: 0.3, 1, 3, 10 and 30 times the method's default]",
)  # fmt: skip
@list_option("--seeds", help="Seeds to average over: 0,1,2 or 0-2.  [default: 0]")
@run_options
@click.option("--write", type=click.Path(dir_okay=False, path_type=Path),
              help="Add the choices to this JSON file.")  # fmt: skip
@json_option("Print the choices as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def tune(
    methods: Sequence[str],
    scenario: str,
    option: str,
    values: str | None,
    seeds: str,
    out: Path,
    write: Path | None,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Choose an option of methods, without test images or later domains."""
    from fsdil_bench.runs.tuning import Choice, keep_choices, load_choices
    from fsdil_bench.runs.tuning import tune as tune_one

    registry = open_registry(plugins, sealed=options["sealed"])
    asked = [run_request(method=method, scenario=scenario, **options) for method in methods]
    if write:
        load_choices(write)  # a broken file is reported before hours of runs
    candidates = names_in(values or "")
    if values is not None and not candidates:
        raise RequestError(f"--values {values!r} has no value", "Write for instance 0.01,0.1.")
    progress = run_progress(quiet)
    choices: list[Choice] = []
    for request in asked:

        def tell(value: Any, score: float, method: str = request.method) -> None:
            progress.say(f"{method}: {option} = {_text(value)} has AA* {score:.2f}")

        choices.append(
            tune_one(
                request, registry, option=option, values=candidates,
                seeds=parse_seeds(None, seeds), out=out, progress=progress, tell=tell,
            )
        )  # fmt: skip
        if write:
            keep_choices(choices[-1:], write)
    if as_json:
        print_json([choice.to_dict() for choice in choices])
        return
    from fsdil_bench.report.terminal import table

    for choice in choices:
        rows = [
            [_text(value), f"{score:.2f}", _mark(choice, value)]
            for value, score in zip(choice.values, choice.scores, strict=True)
        ]
        console().print(table([option, "AA*", ""], rows, f"{choice.method} on {choice.scenario}"))
        click.echo(
            f"on {choice.images} images, scores within {choice.error:.1f} of the best are its equal"
        )
        if choice.at_edge:
            click.echo(
                f"{_text(choice.chosen)} is at the edge of what was tried; try more with --values"
            )
    if write:
        click.echo(f"choices: {write}")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mark(choice: Any, value: Any) -> str:
    marks = ["chosen"] * (value == choice.chosen) + ["default"] * (value == choice.default)
    return ", ".join(marks)
