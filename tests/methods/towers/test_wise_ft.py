from __future__ import annotations

from typing import Any

import pytest
import torch
from fsdil_methods.frozen.zero_shot import ZeroShot
from fsdil_methods.towers.finetune import FineTune
from fsdil_methods.towers.wise_ft import WiseFT, average
from plain_tower import learned_plainly
from tiny_world import World, copied, same

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}
MODES = ["zero-shot", "streaming"]


def tower(method: Any) -> dict[str, torch.Tensor]:
    """The weights that it predicts with."""
    return {k: v.detach().clone() for k, v in method._averaged()[0].named_parameters()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", ["text", "linear"])
def test_no_share_is_zero_shot(world: World, mode: str, head: str) -> None:
    method = world.learn(world.method(WiseFT, **FAST, mode=mode, alpha=0.0, head=head))
    assert same(tower(method), dict(world.backbone.model.visual.named_parameters()))
    assert torch.equal(method._averaged()[1], method.text)
    assert world.predict(method) == world.predict(world.method(ZeroShot))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", ["text", "linear"])
def test_the_whole_share_is_finetune(world: World, mode: str, head: str) -> None:
    method = world.learn(world.method(WiseFT, **FAST, mode=mode, alpha=1.0, head=head))
    other = learned_plainly(world, head, **FAST)
    assert same(tower(method), dict(other.tower.named_parameters()))
    assert same(copied(method), copied(other))
    assert world.predict(method) == world.predict(other)


def test_an_average_with_clip(world: World) -> None:
    """Training itself continues from the fine-tuned weights."""
    method = world.learn(world.method(WiseFT, **FAST, alpha=0.3))
    other = world.learn(world.method(FineTune, **FAST))
    assert same(copied(method), copied(other))
    clip = dict(world.backbone.model.visual.named_parameters())
    for name, value in tower(method).items():
        expected = 0.7 * clip[name] + 0.3 * other.tower.get_parameter(name).detach()
        torch.testing.assert_close(value, expected)


def test_an_average_with_the_weights_before_each_domain(world: World) -> None:
    method = world.method(WiseFT, **FAST, alpha=0.3, mode="streaming")
    for t in range(3):
        other = world.method(FineTune, **FAST)
        other.load_state_dict(copied(method))
        other.learn(world.domain(t))
        before, tuned = copied(method), copied(other)
        method.learn(world.domain(t))
        for name, value in copied(method).items():
            torch.testing.assert_close(value, 0.7 * before[name] + 0.3 * tuned[name])
        assert world.predict(method)


def test_a_state_brings_its_average(world: World) -> None:
    """Also where something was predicted before."""
    method = world.learn(world.method(WiseFT, **FAST, alpha=0.5))
    fresh = world.method(WiseFT, **FAST, alpha=0.5)
    world.predict(fresh)
    fresh.load_state_dict(copied(method))
    assert same(tower(fresh), tower(method))


def test_only_weights_are_averaged(world: World) -> None:
    """Running statistics and counters of normalisation layers are none."""
    layer, other = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    layer.num_batches_tracked.fill_(7)
    with torch.no_grad():
        other.weight.fill_(3.0)
    average(dict(layer.named_parameters()), dict(other.named_parameters()), 0.5)
    assert layer.num_batches_tracked == 7
    assert layer.weight.tolist() == [2.0] * 3
