"""The published choices of options: made by one rule, and followed by the methods' presets."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.job import load_method_class, method_settings
from fsdil_bench.runs.tuning import Choice, load_choices

ROOT = Path(__file__).parent.parent
RULE = runpy.run_path(str(ROOT / "sweeps" / "choose.py"))
CHOICES = [
    (world, choice)
    for world in RULE["WORLDS"]
    for choice in load_choices(ROOT / "leaderboards" / "tuning" / f"{world}.json")
]
TUNED = {*RULE["OTHERS"], *RULE["PROMPTS"], *RULE["CVLC"]}


def ids(value):
    return value if isinstance(value, str) else f"{value['method']}-{value['option']}"


def test_every_method_with_a_learning_rate_is_tuned_or_takes_a_choice():
    """But cvlc-paper, which keeps the paper's, and what only adapts a cache with an option."""
    registry = load_registry()
    trained = {
        name for name, info in registry.methods.items()
        if "lr" in as_dict(resolve(load_method_class(info).Config, owner=name, see=""))
    }  # fmt: skip
    assert trained == TUNED | set(RULE["SAME_AS"]) | {"cvlc-paper", "tip-adapter"}


def climbed(choice, trials):
    """The multiples of the default that the rule tries, given the scores that were found."""
    scores = {}
    for score in choice["scores"]:
        scores[RULE["next_factor"](scores)] = score
    assert len(scores) == trials
    return list(scores)


@pytest.mark.parametrize(
    ("scores", "following"),
    [
        ([], 1), ([5], 4), ([5, 6], 16), ([6, 5], 1 / 4), ([5, 6, 7], 64), ([6, 5, 7], 1 / 16),
        ([5, 7, 6], 8), ([6, 7, 5], 2), ([7, 6, 5], 2), ([7, 5, 6], 1 / 2),
    ],
)  # fmt: skip
def test_a_climb_goes_on_to_the_better_side(scores, following):
    known = {}
    for score in scores:
        known[RULE["next_factor"](known)] = score
    assert RULE["next_factor"](known) == pytest.approx(following)


@pytest.mark.parametrize(("world", "choice"), CHOICES, ids=ids)
def test_four_trials_each(world, choice):
    method, of_rate = choice["method"], choice["option"] == "lr"
    assert choice["option"] in RULE["options_of"](method)
    if of_rate:
        factors = climbed(choice, RULE["rate_trials"](method))
        assert choice["values"] == pytest.approx([f * choice["default"] for f in factors])
    else:
        assert len(choice["values"]) == 2  # one of them was a trial of the rate
        assert choice["default"] in choice["values"]
    assert choice["scenario"] == f"{world}-{RULE['SHOTS']}shot@validation"


@pytest.mark.parametrize(("world", "choice"), CHOICES, ids=ids)
def test_the_choice_follows_from_the_scores(world, choice):
    kept = {name: choice[name] for name in ("method", "option", "scenario", "default", "images")}
    values, scores, seeds = (tuple(choice[name]) for name in ("values", "scores", "seeds"))
    again = Choice(**kept, values=values, scores=scores, seeds=seeds)
    assert again.chosen == choice["chosen"]


@pytest.mark.parametrize(("world", "choice"), CHOICES, ids=ids)
def test_methods_run_with_what_was_chosen(world, choice):
    registry = load_registry()
    followers = [name for name, of in RULE["SAME_AS"].items() if of == choice["method"]]
    for method in (choice["method"], *followers):
        config = as_dict(method_settings(registry.method(method), world, {}))
        assert config[choice["option"]] == choice["chosen"], method


def test_nothing_else_was_chosen():
    chosen = json.loads((ROOT / "methods" / "chosen.json").read_text(encoding="utf-8"))
    found = {
        (method, world, option)
        for method, worlds in chosen.items()
        for world, options in worlds.items()
        for option in options
    }
    known = {(choice["method"], world, choice["option"]) for world, choice in CHOICES}
    for method, of in RULE["SAME_AS"].items():
        known |= {(method, world, option) for name, world, option in known if name == of}
    assert found == known
