"""The options that `run` and `tune` share, and the arguments of `fsdil_bench.run` behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from fsdil_bench.data.scenario import TRANSFORMS
from fsdil_bench.errors import RequestError

_OPTIONS = [
    click.option(
        "--backbone", "-b", default="", help="Default: the scenario's. See `list backbones`."
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A method's option."
    ),
    click.option(
        "--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="TOML file with the method's options; --set wins over it.",
    ),
    click.option("--data", type=click.Path(path_type=Path), help="Where a scenario's images are."),
    click.option(
        "--order", default="", help="Domains in order, comma-separated; may be a selection."
    ),
    click.option("--base", default="", help="The domain that comes first."),
    click.option(
        "--base-limit", type=click.IntRange(1), help="At most so many base images per class."
    ),
    click.option("--names", type=click.Path(path_type=Path), help="JSON file with class names."),
    click.option("--synonyms", type=click.Path(path_type=Path), help="JSON file with synonyms."),
    click.option(
        "--scenario-set", "scenario_settings", multiple=True, metavar="KEY=VALUE",
        help="A scenario's option.",
    ),
    click.option(
        "--transform", default="", metavar="NAME",
        help=f"How images are cut, augmented and normalised: {', '.join(TRANSFORMS)}."
        "  [default: the scenario's own]",
    ),
    click.option(
        "--workers", type=click.IntRange(0),
        help="Threads that decode and augment images; 0 for none.  [default: one per processor]",
    ),
    click.option(
        "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 ... or mps."
    ),
    click.option(
        "--precision", default="auto", show_default=True,
        help="auto, fp32, tf32 or bf16 (both CUDA); auto is bf16 on GPUs that have it.",
    ),
    click.option(
        "--batch-size", type=click.IntRange(1),
        help="Images per forward pass without training.  [default: 256 on CUDA, else 32]",
    ),
    click.option(
        "--deterministic", is_flag=True, help="Ask torch for the same bits every time: slower."
    ),
    click.option(
        "--out", default="runs", show_default=True, type=click.Path(path_type=Path),
        help="Folder for run records.",
    ),
]  # fmt: skip


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run_arguments(
    *,
    settings: Sequence[str],
    config_file: Path | None,
    scenario_settings: Sequence[str],
    order: str,
    **others: Any,
) -> dict[str, Any]:
    """Arguments of `fsdil_bench.run`; other options go there as they are."""
    from fsdil_bench.plugins.options import parse_assignments

    config = _read_toml(config_file) if config_file else {}
    return {
        "config": config | parse_assignments(settings),
        "scenario_options": parse_assignments(scenario_settings),
        "order": [name.strip() for name in order.split(",") if name.strip()],
        **others,
    }


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
