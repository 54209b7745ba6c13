"""A strategy that trains nothing does not pass as a method that trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsdil_bench import MethodInfo, avalanche_method
from fsdil_bench.checks import check_method
from fsdil_bench.plugins.registry import load_registry

pytest.importorskip("avalanche")
TOY = Path(__file__).parent.parent / "toy_plugin.py"


def naive(config: Any, **parts: Any) -> Any:
    from avalanche.training.supervised import Naive

    return Naive(**parts)


def does_nothing(config: Any, **parts: Any) -> Any:
    strategy = naive(config, **parts)
    strategy.train = lambda *_, **__: None
    return strategy


def steps_without_length(config: Any, **parts: Any) -> Any:
    """What it remembers changes: importances and a counter of steps."""
    from avalanche.training.supervised import EWC

    parts["optimizer"].param_groups[0]["lr"] = 0.0
    return EWC(ewc_lambda=1.0, **parts)


def trains_a_copy(config: Any, **parts: Any) -> Any:
    from copy import deepcopy

    return naive(config, **parts | {"model": deepcopy(parts["model"])})


@pytest.mark.parametrize(
    ("strategy", "check", "words"),
    [
        (does_nothing, "trained-parameters", "learning leaves all of them as they are"),
        (steps_without_length, "trained-parameters", "learning leaves all of them as they are"),
        (trains_a_copy, "learns", "other images with other labels leave the same state"),
    ],
)
def test_a_strategy_that_changes_no_parameter_is_found(strategy, check, words):
    failed = {each.name: each.found for each in checked(strategy) if not each.passed}
    assert words in failed[check]


def test_one_that_trains_passes():
    assert all(finding.passed for finding in checked(naive))


def checked(strategy: Any) -> list[Any]:
    registry = load_registry([TOY])
    registry.methods["subject"] = MethodInfo("subject", "a strategy", avalanche_method(strategy))
    only = ["learns", "trained-parameters"]
    return check_method("subject", only=only, registry=registry, scenario="toy-2shot")
