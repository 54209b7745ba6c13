from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fsdil_methods.prompts.prompt_training import PromptConfig, train_prompts
from tiny_world import BASE, CLASSES, World

PLAIN: dict[str, Any] = {"momentum": 0.0, "weight_decay": 0.0, "augment": False}


def moved(world: World, t: int, config: PromptConfig, **options: Any) -> float:
    """How far a number goes that always has the slope 1: the sum of the learning rates."""
    start = {"x": torch.zeros(1)}
    domain = world.domain(t)
    return -float(train_prompts(start, domain, config, lambda p, _: p["x"].sum(), **options)["x"])


def test_the_rate_falls_like_a_cosine(world: World) -> None:
    config = PromptConfig(**PLAIN, lr=0.1, steps=20)
    expected = sum(0.1 * 0.5 * (1 + math.cos(math.pi * k / 20)) for k in range(20))
    assert moved(world, 1, config) == pytest.approx(expected, rel=1e-5)


def test_the_warm_up_is_one_pass_and_never_more_than_a_tenth(world: World) -> None:
    """8 images in batches of 2 are 4 steps in a pass."""
    for steps, held in ((60, 4), (20, 2), (9, 0)):
        config = PromptConfig(**PLAIN, lr=0.1, steps=steps, batch_size=2)
        rest = [0.1 * 0.5 * (1 + math.cos(math.pi * k / steps)) for k in range(held, steps)]
        expected = held * 1e-5 + sum(rest)
        assert moved(world, 1, config, warm_up=True) == pytest.approx(expected, rel=1e-5)


def test_steps_in_base_and_few_shot_domains(world: World) -> None:
    config = PromptConfig(batch_size=16, base_epochs=3, steps=7)
    images = BASE * len(CLASSES)
    assert config.total_steps(world.domain(0)) == 3 * math.ceil(images / 16)
    assert config.total_steps(world.domain(1)) == 7


def test_what_is_not_handed_over_is_not_touched(world: World) -> None:
    start = {"x": torch.ones(3)}
    config = PromptConfig(lr=0.1, steps=3, weight_decay=0.5)
    trained = train_prompts(start, world.domain(1), config, lambda p, _: p["x"].sum())
    assert torch.equal(start["x"], torch.ones(3))
    assert not trained["x"].equal(start["x"])
    assert not trained["x"].requires_grad
