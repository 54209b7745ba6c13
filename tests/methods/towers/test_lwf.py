from __future__ import annotations

from typing import Any

import pytest
import torch
from fsdil_methods.towers.distillation import distillation
from fsdil_methods.towers.finetune import FineTune
from fsdil_methods.towers.lwf import LwF
from plain_tower import learned_plainly
from tiny_world import World, copied, same

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}


def test_the_distillation_is_that_of_softened_probabilities() -> None:
    """p^(1/T), scaled to sum 1, is softmax(l / T)."""
    old, new = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    p, q = ((each.softmax(1) ** (1 / 2)) for each in (old, new))
    p, q = p / p.sum(1, keepdim=True), q / q.sum(1, keepdim=True)
    expected = (p * (p / q).log()).sum(1).mean()
    torch.testing.assert_close(distillation(new / 2, old / 2), expected)


@pytest.mark.parametrize("head", ["text", "linear"])
def test_without_weight_it_is_finetune(world: World, head: str) -> None:
    one = world.learn(world.method(LwF, **FAST, head=head, alpha=0.0))
    other = learned_plainly(world, head, **FAST)
    assert same(copied(one), copied(other))


def test_the_base_domain_has_no_teacher(world: World) -> None:
    one, other = world.method(LwF, **FAST, alpha=9.0), world.method(FineTune, **FAST)
    for method in (one, other):
        method.learn(world.domain(0))
    assert same(copied(one), copied(other))


@pytest.fixture
def watched(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A method that has learned two domains, and what happened in every step of the second."""
    method = world.learn(world.method(LwF, **FAST), upto=1)
    seen: list[dict[str, Any]] = []
    penalty = method.penalty

    def watching(images: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        value = penalty(images, logits)
        with torch.no_grad():
            student = method.logits(method.tower(images))
        seen.append({
            "penalty": float(value.detach()),
            "teacher": {k: v.clone() for k, v in method.teacher.state_dict().items()},
            "same views": torch.equal(student, logits.detach()),
        })  # fmt: skip
        return value

    monkeypatch.setattr(method, "penalty", watching)
    before = copied(method)
    method.learn(world.domain(1))
    return before, seen, method


def test_the_first_step_has_nothing_to_distil(watched: Any) -> None:
    _, seen, _ = watched
    assert seen[0]["penalty"] == 0
    assert all(step["penalty"] > 0 for step in seen[1:])


def test_the_teacher_is_the_model_before_the_domain_on_the_same_views(watched: Any) -> None:
    before, seen, method = watched
    tower = {k.removeprefix("tower."): v for k, v in before.items()}
    assert len(seen) == 4
    assert all(same(step["teacher"], tower) for step in seen)
    assert all(step["same views"] for step in seen)
    assert method.teacher is None, "and it is gone afterwards"


def test_it_stays_nearer_to_the_teacher(world: World) -> None:
    images = world.test_batch().images

    def moved(alpha: float) -> float:
        method = world.learn(world.method(LwF, **FAST | {"steps": 20}, alpha=alpha), upto=1)
        before = method.logits(method.tower(images)).detach()
        method.learn(world.domain(1))
        return float(distillation(method.logits(method.tower(images)) / 4, before / 4).detach())

    assert moved(100.0) < 0.5 * moved(0.0)
