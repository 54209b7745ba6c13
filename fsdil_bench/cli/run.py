"""`fsdil-bench run`: a method on a scenario, for one seed or several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import RequestError
from ..scenario import TRANSFORMS
from .common import console, debug_option, open_registry, plugin_option, run_progress


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
@click.option("--backbone", "-b", default="", help="Default: the scenario's. See `list backbones`.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A method's option.")
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with the method's options; --set wins over it.",
)  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path), help="Where a scenario's images are.")
@click.option("--order", default="", help="Domains in order, comma-separated; may be a selection.")
@click.option("--base", default="", help="The domain that comes first.")
@click.option("--base-limit", type=click.IntRange(1), help="At most so many base images per class.")
@click.option("--names", type=click.Path(path_type=Path), help="JSON file with class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="JSON file with synonyms.")
@click.option(
    "--scenario-set", "scenario_settings", multiple=True, metavar="KEY=VALUE",
    help="A scenario's option.",
)  # fmt: skip
@click.option(
    "--transform", default="", metavar="NAME",
    help=f"How images are cut, augmented and normalised: {', '.join(TRANSFORMS)}."
    "  [default: the scenario's own]",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(0),
    help="Threads that decode and augment images; 0 for none.  [default: one per processor]",
)  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 ...")
@click.option("--precision", default="auto", show_default=True, help="auto, fp32 or bf16 (CUDA).")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="Folder for run records.")  # fmt: skip
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
    settings: Sequence[str],
    config_file: Path | None,
    scenario_settings: Sequence[str],
    order: str,
    resume: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Run a method on a scenario, for one seed or several."""
    from ..config import parse_assignments
    from ..runner import run as run_once

    registry = open_registry(plugins)
    config = _read_toml(config_file) if config_file else {}
    config |= parse_assignments(settings)
    progress = run_progress(quiet)
    records = []
    for each in parse_seeds(seed, seeds):
        progress.say(f"{method} on {scenario}, seed {each}")
        record = run_once(
            method,
            scenario,
            seed=each,
            config=config,
            order=[name.strip() for name in order.split(",") if name.strip()],
            scenario_options=parse_assignments(scenario_settings),
            fresh=not resume,
            registry=registry,
            progress=progress,
            **options,
        )
        records.append(record)
    if as_json:
        click.echo(json.dumps([json.loads(record.to_json()) for record in records], indent=1))
        return
    from ..tables import summary

    console().print(summary(records))
    for record in records:
        click.echo(f"record: {record.folder}")
    click.echo(f"more:   fsdil-bench show {records[-1].folder}")


def parse_seeds(seed: int | None, seeds: str | None) -> list[int]:
    """The seeds that `--seed` or `--seeds` ask for; 0 by default."""
    if seeds is None:
        return [seed or 0]
    if seed is not None:
        raise RequestError("--seed and --seeds exclude each other", "Give one of them.")
    parsed: list[int] = []
    try:
        for part in seeds.split(","):
            first, dash, last = part.strip().partition("-")
            parsed += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        parsed = []
    if not parsed:
        raise RequestError(f"--seeds {seeds} is not a list of seeds", "Write 0,1,2 or 0-2.")
    return list(dict.fromkeys(parsed))


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(
            f"{path} is not valid TOML: {error}", "Write lines like `lr = 0.1`."
        ) from None
