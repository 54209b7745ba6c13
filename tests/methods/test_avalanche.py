"""Avalanche's strategies act as they should; test_contract.py holds them to everything else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.avalanche import EWCMethod, LwFMethod, NaiveMethod, ReplayMethod
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import World, copied, same

from fsdil_bench import PluginError, RequestError, avalanche_method
from fsdil_bench.avalanche import bridge as avalanche_bridge

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}


def weights(method: Any) -> dict[str, torch.Tensor]:
    return {k: v for k, v in copied(method).items() if k.startswith("model.")}


def distance(method: Any, start: dict[str, torch.Tensor]) -> float:
    now = weights(method)
    return float(sum((now[name] - start[name]).square().sum() for name in now))


def logits(world: World, method: Any) -> torch.Tensor:
    with torch.no_grad():
        return method.model(world.test_batch().images)


def buffers(method: Any) -> list[list[int]]:
    """The places of the images it keeps, domain by domain."""
    return [v.tolist() for v in method.memory.values() if v.dtype == torch.int64 and len(v)]


def test_untrained_is_zero_shot(world: World) -> None:
    method = world.learn(world.method(NaiveMethod, base_epochs=0, steps=0))
    assert world.predict(method) == world.predict(world.method(ZeroShot))


def test_naive_is_fine_tuning(world: World) -> None:
    """One step of AdamW from rest is lr * sign(gradient); more steps lower the loss."""
    domain = world.domain(0)
    step = {"lr": 1e-3, "weight_decay": 0.0, "batch_size": 999, "augment": False}
    method, before = world.method(NaiveMethod, **step), world.method(NaiveMethod, **step)
    F.cross_entropy(before.model(domain.images()), domain.labels).backward()
    method.learn(domain)
    for old, new in zip(before.model.parameters(), method.model.parameters(), strict=True):
        clear = old.grad.abs() > 1e-4
        assert clear.any()
        torch.testing.assert_close((old - 1e-3 * old.grad.sign())[clear], new[clear])

    method = world.method(NaiveMethod, **FAST, base_epochs=5)
    losses = []
    for _ in range(2):
        with torch.no_grad():
            losses.append(F.cross_entropy(method.model(domain.images()), domain.labels))
        method.learn(world.domain(0))
    assert losses[1] < 0.7 * losses[0]


def test_step_budget(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 images in batches of 16 are 4 steps; a few-shot domain takes what the option says."""
    taken = 0
    step = torch.optim.AdamW.step

    def counting(self: torch.optim.AdamW, *arguments: Any) -> Any:
        nonlocal taken
        taken += 1
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", counting)
    method = world.method(EWCMethod, batch_size=16, base_epochs=2, steps=7)
    method.learn(world.domain(0))
    assert taken == 8
    method.learn(world.domain(1))
    assert taken == 8 + 7


def test_ewc_holds_the_weights_where_they_matter(world: World) -> None:
    config = FAST | {"steps": 20}
    free, bound = (world.method(EWCMethod, **config, ewc_lambda=lam) for lam in (0.0, 1e4))
    for method in (free, bound):
        method.learn(world.domain(0))
    start = weights(free)
    assert same(start, weights(bound)), "there is nothing to hold on to in the base domain"
    for method in (free, bound):
        method.learn(world.domain(1))
    assert 0 < distance(bound, start) < 0.5 * distance(free, start)


def test_lwf_keeps_the_outputs(world: World) -> None:
    free, bound = (world.method(LwFMethod, **FAST, alpha=alpha) for alpha in (0.0, 50.0))
    for method in (free, bound):
        method.learn(world.domain(0))
    assert same(weights(free), weights(bound))
    start = logits(world, free)
    for method in (free, bound):
        method.learn(world.domain(1))
    moved = [float((logits(world, method) - start).square().mean()) for method in (free, bound)]
    assert 0 < moved[1] < 0.5 * moved[0]


def test_replay_trains_on_old_images(world: World) -> None:
    """The images it draws of the base domain are those it kept, in numbers that are balanced."""
    method = world.method(ReplayMethod, **FAST, kept_images=6)
    first, second, old = world.domain(0), world.domain(1), world.domain(0)
    first._earlier, second._earlier = (), (old,)
    drawn: set[int] = set()
    take = old.take

    def watched(positions: Any, **options: Any) -> Any:
        drawn.update(positions)
        return take(positions, **options)

    old.take = watched  # type: ignore[method-assign]
    method.learn(first)
    [kept] = buffers(method)
    method.learn(second)
    assert len(kept) == 6
    assert drawn == set(kept)
    assert [len(places) for places in buffers(method)] == [3, 3]


def test_an_exemplar_free_method_cannot_replay(world: World) -> None:
    with pytest.raises(PluginError, match="images of earlier domains"):
        world.run(world.method(ReplayMethod, **FAST), exemplar_free=True)


def test_memory_that_cannot_be_kept_is_refused(world: World) -> None:
    def odd(config: Any, **parts: Any) -> Any:
        from avalanche.training.plugins import SupervisedPlugin
        from avalanche.training.supervised import Naive

        class Odd(SupervisedPlugin):
            def after_training_exp(self, strategy: Any, **_: Any) -> None:
                self.seen = object()

        parts["plugins"].append(Odd())
        return Naive(**parts)

    with pytest.raises(PluginError, match="a object, which cannot be kept"):
        world.method(avalanche_method(odd), **FAST).learn(world.domain(0))


def with_plugins(how: str) -> Any:
    """A strategy with a plugin of its own, which adds up the labels of what is trained on."""

    def brings(config: Any, **parts: Any) -> Any:
        from avalanche.training.plugins import SupervisedPlugin
        from avalanche.training.supervised import EWC

        class Sum(SupervisedPlugin):
            total = 0

            def after_training_iteration(self, strategy: Any, **_: Any) -> None:
                self.total += int(strategy.mb_y.sum())

        if how == "added":
            parts["plugins"] += [Sum()]
        elif how == "replaced":
            parts["plugins"] = [Sum()]
        else:
            return EWC(ewc_lambda=1.0, plugins=[Sum()], **parts)
        return EWC(ewc_lambda=1.0, **parts)

    return avalanche_method(brings)


def test_plugins_of_a_strategy_are_merged_with_those_of_the_harness(world: World) -> None:
    """However they are given: the budget of steps holds, and what they know stays."""
    learned = []
    for how in ("added", "replaced", "given"):
        method = world.method(with_plugins(how), **FAST, augment=False)
        totals = []
        for t in range(2):
            method.learn(world.domain(t))
            plans = json.loads(bytes(method.memory["plan"].tolist()))
            known = [dict(plan[1]) for plan in plans if plan[0] == "dict"]
            totals += [plan["total"][1] for plan in known if "total" in plan]
        assert 0 < totals[0] < totals[1], "it is remembered from domain to domain"
        learned.append((totals, weights(method)))
    for totals, state in learned[1:]:
        assert totals == learned[0][0]
        assert same(state, learned[0][1])


@pytest.mark.parametrize("part", ["evaluator", "model"])
def test_a_part_that_is_given_twice_is_named(world: World, part: str) -> None:
    def twice(config: Any, **parts: Any) -> Any:
        from avalanche.training.supervised import Naive

        return Naive(**{part: []}, **parts)

    with pytest.raises(PluginError, match=f"is given '{part}' twice") as refused:
        world.method(avalanche_method(twice), **FAST).learn(world.domain(0))
    assert "plugins you may bring yourself" in refused.value.remedy


def test_another_type_error_of_a_strategy_is_its_own(world: World) -> None:
    def wrong(config: Any, **parts: Any) -> Any:
        from avalanche.training.supervised import Naive

        return Naive(strength=1, **parts)

    with pytest.raises(TypeError, match="strength"):
        world.method(avalanche_method(wrong), **FAST).learn(world.domain(0))


def test_a_strategy_sees_one_experience(world: World) -> None:
    seen = []

    def watching(config: Any, **parts: Any) -> Any:
        from avalanche.training.plugins import SupervisedPlugin
        from avalanche.training.supervised import Naive

        class Watching(SupervisedPlugin):
            def before_training_exp(self, strategy: Any, **_: Any) -> None:
                experience = strategy.experience
                seen.append((experience.current_experience, len(experience.origin_stream)))

        parts["plugins"].append(Watching())
        return Naive(**parts)

    world.run(world.method(avalanche_method(watching), **FAST))
    assert seen == [(0, 1), (1, 1), (2, 1)]


def test_synaptic_intelligence_is_plain_fine_tuning_on_a_cpu(world: World) -> None:
    """docs/avalanche.md says so. When this fails, Avalanche has repaired it."""

    def si(config: Any, **parts: Any) -> Any:
        from avalanche.training.supervised import SynapticIntelligence

        return SynapticIntelligence(si_lambda=1e4, **parts)

    kinds = avalanche_method(si), NaiveMethod
    ours, naive = (world.learn(world.method(kind, **FAST)) for kind in kinds)
    assert same(weights(ours), weights(naive))


def test_listed_without_avalanche_and_a_clear_error_when_built(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "avalanche", None)
    with pytest.raises(RequestError, match=r"fsdil-bench\[avalanche\]"):
        avalanche_bridge.require_avalanche()
    with pytest.raises(RequestError, match=r"fsdil-bench\[avalanche\]"):
        world.method(NaiveMethod)


def test_options_can_be_shown_without_importing_avalanche() -> None:
    code = "import sys; import fsdil_methods.avalanche; print('avalanche' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
