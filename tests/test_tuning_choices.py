"""The published choices of options, and the presets that were to follow from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.job import load_method_class
from fsdil_bench.runs.tuning import FACTORS, Choice, load_choices

CHOICES = load_choices(Path(__file__).parent.parent / "leaderboards" / "tuning" / "drawn.json")
#: Methods that train by gradient descent at a rate, with those whose choice they share.
TUNED = {
    "finetune": ["finetune", "base-only", "joint"],
    "lwf": ["lwf"],
    "ewc": ["ewc"],
    "wise-ft": ["wise-ft", "wise-ft-streaming"],
    "tip-adapter-f": ["tip-adapter-f"],
    **{
        name: [name]
        for name in ("coop", "coop-domains", "s-prompts", "cp-prompt", "l2p", "dualprompt",
                     "coda-prompt", "inflora")
    },
}  # fmt: skip


def ids(choice):
    return f"{choice['method']}-{choice['option']}"


def test_all_of_them_were_tuned_with_as_many_tries():
    rates = {choice["method"]: choice for choice in CHOICES if choice["option"] == "lr"}
    assert rates.keys() == TUNED.keys()
    for choice in rates.values():
        assert choice["values"] == pytest.approx([f * choice["default"] for f in FACTORS])


@pytest.mark.parametrize("choice", CHOICES, ids=ids)
def test_presets_follow_from_choices(choice):
    registry = load_registry()
    for method in TUNED[choice["method"]]:
        info = registry.method(method)
        kind = load_method_class(info)
        layers = kind.presets.get("drawn", {}), info.overrides
        config = as_dict(resolve(kind.Config, *layers, owner=method, see=""))
        assert config[choice["option"]] == choice["chosen"], method


@pytest.mark.parametrize("choice", CHOICES, ids=ids)
def test_the_choice_follows_from_the_scores(choice):
    assert choice["scenario"] == "drawn-4shot@validation"
    kept = {name: choice[name] for name in ("method", "option", "scenario", "default", "images")}
    values, scores, seeds = (tuple(choice[name]) for name in ("values", "scores", "seeds"))
    again = Choice(**kept, values=values, scores=scores, seeds=seeds)
    assert again.chosen == choice["chosen"]
