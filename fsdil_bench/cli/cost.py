"""`fsdil-bench cost`: what runs will cost, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from fsdil_bench.forecast.account import Charge
    from fsdil_bench.forecast.forecaster import RunForecast


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench cost slda drawn-4shot\n"
    "  fsdil-bench cost cvlc core50-1shot --on rtx-4090 --on a100\n"
    "  fsdil-bench cost finetune drawn-1shot --set steps=500 --seeds 0-2 --json\n"
    "\n"
    "The method is rehearsed for some seconds on made-up images: nothing is trained, and neither\n"
    "images nor weights of published data sets have to be there. docs/cost.md says how good the\n"
    "numbers are."
)
@click.argument("method", shell_complete=names.methods)
@click.argument("scenario", shell_complete=names.scenarios)
@click.option("--seed", type=int, help="Seed of everything random in the run.  [default: 0]")
@list_option("--seeds", help="Several seeds: 0,1,2 or 0-2.")
@click.option(
    "--on", "hardware", multiple=True, metavar="HARDWARE",
    help="this-machine, or a graphics processor such as rtx-4090 or a100; may be given several "
    "times.  [default: this-machine]",
)  # fmt: skip
@run_options
@json_option("Print the numbers as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def cost(
    method: str,
    scenario: str,
    seed: int | None,
    seeds: str,
    hardware: Sequence[str],
    out: Path,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Say what runs of METHOD on SCENARIO will cost: operations, memory, time."""
    del out
    registry = open_registry(plugins)
    asked = run_request(method=method, scenario=scenario, **options)
    requests = [replace(asked, seed=each) for each in parse_seeds(seed, seeds)]
    registry.method(method), registry.scenario(asked.scenario.dataset)

    from fsdil_bench.forecast.account import Account
    from fsdil_bench.forecast.forecaster import Forecaster
    from fsdil_bench.forecast.hardware import THIS_MACHINE

    say = run_progress(quiet).say
    forecasters = [Forecaster(registry, name, say) for name in hardware or (THIS_MACHINE,)]
    found = []
    for forecaster in forecasters:
        account = Account()
        runs = [forecaster.forecast(request) for request in requests]
        found.append((runs, [account.charge(run) for run in runs]))
    if as_json:
        print_json([_summary(*each) for each in found])
        return
    _show(found)


def _summary(runs: list[RunForecast], charges: list[Charge]) -> dict[str, Any]:
    first = runs[0]
    return first.to_dict() | {
        "runs": len(runs),
        "all_runs": {
            "seconds": round(sum(each.seconds for each in charges), 3),
            "flops": round(sum(each.flops for each in charges)),
            "images_forward": round(sum(each.images for each in charges)),
        },
    }


def _show(found: Sequence[tuple[list[RunForecast], list[Charge]]]) -> None:
    from fsdil_bench.forecast.words import say_bytes, say_flops
    from fsdil_bench.report.terminal import table
    from fsdil_bench.sweeps.estimate import say_seconds

    run = found[0][0][0]
    numbers = run.to_dict()
    title = f"{run.request.method} on {run.request.scenario}, {run.cost.backbone}"
    shared = f"{say_flops(numbers['flops_shared'])} of it shared with other runs"
    rows = [
        ["operations of the towers", f"{say_flops(numbers['flops'])} ({shared})"],
        ["images through the tower",
         f"{numbers['images_forward']:,.0f}, {numbers['images_backward']:,.0f} of them back"],
        ["tokens of texts",
         f"{numbers['text_tokens_forward']:,.0f}, {numbers['text_tokens_backward']:,.0f} back"],
        ["views of images", f"{numbers['views']:,.0f}"],
    ]  # fmt: skip
    console().print(table(["", "one run"], rows, title))
    rows = []
    for runs, charges in found:
        speed, seconds = runs[0].speed, runs[0].cost.seconds(runs[0].speed)
        memory = runs[0].cost.memory(speed)
        short = speed.memory is not None and memory > speed.memory
        rows.append(
            [f"{speed.title}, {speed.precision}", say_bytes(memory) + (" (too much)" * short),
             say_seconds(seconds["features"] + seconds["texts"]),
             say_seconds(seconds["learn base"]), say_seconds(seconds["learn later"]),
             say_seconds(seconds["test"]), say_seconds(sum(each.seconds for each in charges))]
        )  # fmt: skip
    heads = ["on", "peak memory", "features", "learn base", "learn later", "test"]
    runs, _ = found[0]
    heads.append("in all" if len(runs) == 1 else f"{len(runs)} runs")
    console().print(table(heads, rows))
    if run.cost.published_sizes:
        click.echo("The images are not here: their published numbers are used.")
    for runs, charges in found:
        total = say_seconds(sum(each.seconds for each in charges))
        number = f"{len(runs)} run{'s' * (len(runs) > 1)}"
        click.echo(f"{number}, about {total} on {runs[0].speed.article}")
