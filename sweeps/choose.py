"""Choose options of all methods that train, on the embedded worlds' `@validation`, by one rule.

    python sweeps/choose.py drawn            tries values; the same command again resumes
    python sweeps/choose.py --write          writes methods/chosen.json from all choices

Every method has four trials, and no trial trains for longer than the others. Most methods spend all
four on their learning rate. CVLC, its variants and the methods that learn prompts spend three on it
and one on the number of steps at the rate that was chosen.

Rates are climbed: the method's default, four times as much, then further to the better side, and
between the best and its better neighbour once both neighbours are known. Defaults are made for CLIP
ViT-B/16, and a small model may want other orders of magnitude. `fsdil_bench.runs.tuning` says which
value is taken. All trials and their scores are kept in leaderboards/tuning/.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.plugins.options import as_dict
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.runs.job import method_settings
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.tuning import Choice, keep_choices, load_choices, tune

PROJECT = Path(__file__).parent.parent
CHOICES = PROJECT / "leaderboards" / "tuning"
CHOSEN = PROJECT / "methods" / "chosen.json"
WORLDS = ("drawn", "shelf", "forged")
SHOTS = 4
#: Base images of a class: at most about a thousand in all, so a trial takes half a minute.
BASE_LIMITS = {"drawn": 40, "shelf": None, "forged": None}

STRIDE = 4.0  # between two rates of a climb
CVLC = (
    "cvlc", "cvlc-lora", "cvlc-prompt", "cvlc-no-lsr", "cvlc-all-specific", "cvlc-single-template",
    "cvlc-no-text", "cvlc-frozen",
)  # fmt: skip
PROMPTS = (
    "coop", "coop-domains", "s-prompts", "cp-prompt", "soyo", "l2p", "dualprompt", "coda-prompt",
    "sec-prompt", "pgo-like",
)  # fmt: skip
OTHERS = (
    "finetune", "lwf", "ewc", "wise-ft", "inflora", "duct", "duct-text", "conec-lora", "asp", "app",
    "icon", "dytox", "dytox-replay", "fshil-lite", "tip-adapter-f", "linear-probe", "rapf",
    "dualcp-lite", "avalanche-naive", "avalanche-ewc", "avalanche-lwf", "avalanche-replay", "joint",
)  # fmt: skip
#: Methods that take the choice of another one, of which they are a setting.
SAME_AS = {"base-only": "finetune", "wise-ft-streaming": "wise-ft"}

#: Half of what a budget allows, and all of it. CVLC counts passes over the few shots.
STEPS = {"drawn": (12, 25), "shelf": (12, 25), "forged": (25, 50)}
EPOCHS = {"drawn": (4, 8), "shelf": (2, 4), "forged": (8, 16)}


def options_of(method: str) -> tuple[str, ...]:
    """The options of a method that are chosen."""
    if method in OTHERS:
        return ("lr",)
    return ("lr", "epochs" if method in CVLC else "steps")


def kept(method: str, file: Path) -> list[dict[str, Any]]:
    """The choices for a method that are in a file already."""
    return [choice for choice in load_choices(file) if choice["method"] == method]


def rate_trials(method: str) -> int:
    """How many of a method's four trials are for its learning rate."""
    return 4 if method in OTHERS else 3


def next_factor(scores: Mapping[float, float]) -> float:
    """The multiple of the default rate to try next, after those with these scores."""
    if len(scores) < 2:
        return (1.0, STRIDE)[len(scores)]
    best = max(scores, key=lambda factor: scores[factor])
    neighbours = (best * STRIDE, best / STRIDE)
    for neighbour in neighbours:
        if neighbour not in scores:
            return neighbour
    better = max(neighbours, key=lambda factor: scores[factor])
    return (best * better) ** 0.5


def choose(method: str, world: str, registry: Registry, out: Path) -> list[Choice]:
    """The choices of a method on a world: its learning rate, and perhaps its number of steps."""
    found = [climb(method, world, registry, out)]
    for option in options_of(method)[1:]:
        values = (EPOCHS if option == "epochs" else STEPS)[world]
        config = {"lr": found[0].chosen}
        found.append(tried(request_of(method, world, config), registry, out, option, values))
    return found


def climb(method: str, world: str, registry: Registry, out: Path) -> Choice:
    """The choice of a method's learning rate, trial by trial."""
    request = request_of(method, world, {})
    default = as_dict(method_settings(registry.method(method), world, {}))["lr"]
    scores: dict[float, float] = {}
    for _ in range(rate_trials(method)):
        factors = [*scores, next_factor(scores)]
        rates = [float(f"{factor * default:.6g}") for factor in factors]
        choice = tried(request, registry, out, "lr", rates)
        scores = dict(zip(factors, choice.scores, strict=True))
    return choice


def request_of(method: str, world: str, config: dict[str, Any]) -> RunRequest:
    """What all trials of a method on a world ask for."""
    scenario = f"{world}-{SHOTS}shot"
    limit = BASE_LIMITS[world]
    return RunRequest.of(method=method, scenario=scenario, base_limit=limit, config=config)


def tried(request: RunRequest, registry: Registry, out: Path, option: str, values: Any) -> Choice:
    """Runs with all values, of which those that are complete are not repeated."""

    def tell(value: Any, score: float) -> None:
        if value == values[-1] or option != "lr":
            world = request.scenario.dataset
            print(f"{world}, {request.method}: {option} = {value} has AA* {score:.2f}", flush=True)

    return tune(request, registry, option=option, values=values, out=out, tell=tell)


def write_chosen() -> None:
    """methods/chosen.json: for each method and world, what was chosen."""
    chosen: dict[str, dict[str, dict[str, Any]]] = {}
    for world in WORLDS:
        for choice in load_choices(CHOICES / f"{world}.json"):
            followers = [name for name, of in SAME_AS.items() if of == choice["method"]]
            for method in (choice["method"], *followers):
                chosen.setdefault(method, {}).setdefault(world, {})[choice["option"]] = choice[
                    "chosen"
                ]
    CHOSEN.write_text(json.dumps(chosen, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Choose options on the embedded worlds.")
    # `choices` with "*" would refuse to have none.
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=", ".join(WORLDS))
    parser.add_argument("--methods", help="comma-separated; all by default")
    parser.add_argument("--out", type=Path, default=Path("runs") / "tuning")
    parser.add_argument("--write", action="store_true", help="write methods/chosen.json")
    asked = parser.parse_args()
    if lost := set(asked.worlds) - set(WORLDS):
        parser.error(f"no world {', '.join(sorted(lost))}: there are {', '.join(WORLDS)}")
    torch.set_num_threads(1)
    registry = load_registry()
    for name, info in registry.methods.items():  # the rule starts from what was chosen by nobody
        registry.methods[name] = dataclasses.replace(info, presets={})
    methods = asked.methods.split(",") if asked.methods else [*OTHERS, *PROMPTS, *CVLC]
    for world in asked.worlds:
        file = CHOICES / f"{world}.json"
        for method in methods:
            if {choice["option"] for choice in kept(method, file)} < set(options_of(method)):
                keep_choices(choose(method, world, registry, asked.out), file)
    if asked.write:
        write_chosen()


if __name__ == "__main__":
    main()
