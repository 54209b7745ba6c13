from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.zero_shot import ZeroShot
from fsdil_methods.towers.finetune import FineTune
from tiny_world import World, copied, same

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}


def test_untrained_is_zero_shot(world: World) -> None:
    method = world.learn(world.method(FineTune, base_epochs=0, steps=0))
    assert world.predict(method) == world.predict(world.method(ZeroShot))


def test_training_lowers_the_loss_and_moves_the_tower(world: World) -> None:
    method = world.method(FineTune, **FAST, base_epochs=5)
    domain = world.domain(0)

    def loss() -> float:
        with torch.no_grad():
            z = F.normalize(method.tower(domain.images()), dim=-1)
            return float(F.cross_entropy(20.0 * z @ method.text.T, domain.labels))

    before, weights = loss(), copied(method)
    method.learn(domain)
    assert loss() < 0.7 * before
    moved = {name for name, value in copied(method).items() if not value.equal(weights[name])}
    assert moved == set(weights), "all of the tower is trained"


def test_a_step_is_adamw_on_the_cross_entropy(world: World) -> None:
    """One step of AdamW from rest is lr * sign(gradient), after the weights have decayed."""
    method = world.method(
        FineTune, lr=1e-3, weight_decay=0.5, base_epochs=1, batch_size=999, augment=False
    )
    domain = world.domain(0)
    tower = world.backbone.visual_copy()
    z = F.normalize(tower(domain.images()), dim=-1)
    F.cross_entropy(20.0 * z @ method.text.T, domain.labels).backward()
    method.learn(world.domain(0))
    for old, new in zip(tower.parameters(), method.tower.parameters(), strict=True):
        assert old.grad is not None
        clear = old.grad.abs() > 1e-4  # where Adam's eps and rounding do not matter
        expected = old * (1 - 1e-3 * 0.5) - 1e-3 * old.grad.sign()
        assert clear.any()
        torch.testing.assert_close(new[clear], expected[clear], atol=1e-6, rtol=0)


def test_no_steps_keep_the_base_row(world: World) -> None:
    config = FAST | {"steps": 0}
    outcome = world.run(world.method(FineTune, **config))
    assert outcome.matrix[0] == outcome.matrix[1][:1] == outcome.matrix[2][:1]
    assert outcome.matrix[1] == outcome.matrix[2][:2]


def test_base_only_is_finetune_that_stops(world: World) -> None:
    stops, continues = (
        world.method(FineTune, **FAST, domains="base"),
        world.method(FineTune, **FAST),
    )
    for method in (stops, continues):
        method.learn(world.domain(0))
    base = copied(stops)
    assert same(base, copied(continues))
    for method in (stops, continues):
        method.learn(world.domain(1))
    assert same(base, copied(stops))
    assert not same(base, copied(continues))


@pytest.mark.parametrize(("epochs", "steps"), [(1, 4), (3, 12)])
def test_step_budget(
    world: World, monkeypatch: pytest.MonkeyPatch, epochs: int, steps: int
) -> None:
    """60 images in batches of 16 are 4 steps; a few-shot domain takes what the option says."""
    taken = 0
    step = torch.optim.AdamW.step

    def counting(self: torch.optim.AdamW, *arguments: Any) -> Any:
        nonlocal taken
        taken += 1
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", counting)
    method = world.method(FineTune, batch_size=16, base_epochs=epochs, steps=7)
    method.learn(world.domain(0))
    assert taken == steps
    method.learn(world.domain(1))
    assert taken == steps + 7


def test_counts_the_weights_of_the_tower(world: World) -> None:
    expected = (192 * 32 + 32) + (32 + 32) + 32 * 16
    assert world.method(FineTune).trained_parameters() == expected
