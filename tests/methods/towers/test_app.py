from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.app import App
from tiny_world import CLASSES, DIM, World, copied

FAST: dict[str, Any] = {"lr": 1e-3, "batch_size": 16, "base_epochs": 2, "row_iterations": 5}


def test_later_domains_leave_the_tower_alone(world: World) -> None:
    method = world.method(App, **FAST)
    before = copied(method)
    method.learn(world.domain(0))
    states = [copied(method)]
    tower = [name for name in before if not name.startswith("rows")]
    assert not any(torch.equal(before[name], states[0][name]) for name in tower)
    for t in (1, 2):
        method.learn(world.domain(t))
        states.append(copied(method))
        assert all(torch.equal(states[0][name], states[t][name]) for name in tower)
        assert torch.equal(states[t]["rows"][:t], states[t - 1]["rows"])
        assert len(states[t]["rows"]) == t + 1


@pytest.mark.parametrize("mode", ["domain-max", "overwrite"])
def test_without_steps_it_is_nearest_class_mean(world: World, mode: str) -> None:
    config = FAST | {"row_iterations": 0, "base_epochs": 0, "rows": mode}
    method = world.learn(world.method(App, **config))
    tower, batch = world.backbone.model.visual, world.test_batch()

    def features(images: torch.Tensor) -> np.ndarray:
        raw = tower(images).detach().double().numpy()
        raw = raw - raw.mean(1, keepdims=True)
        return np.tanh(raw / np.sqrt(raw.var(1, keepdims=True) + 1e-5))

    best = np.full((len(batch), len(CLASSES)), -np.inf)
    for t in range(3) if mode == "domain-max" else [2]:
        domain = world.domain(t)
        own, labels = features(domain.images()), domain.labels.numpy()
        means = np.stack([own[labels == c].mean(0) for c in range(len(CLASSES))])
        f = features(batch.images)
        cosines = f @ means.T / np.linalg.norm(means, axis=1)
        best = np.maximum(best, cosines / np.linalg.norm(f, axis=1, keepdims=True))
    assert world.predict(method) == best.argmax(1).tolist()


def test_a_base_step_is_smoothed_cross_entropy(world: World) -> None:
    """The first step of AdamW goes against the sign of the gradient, here worked out apart."""
    for smoothing in (0.0, 0.5):
        config = {
            "lr": 1e-3, "weight_decay": 0.0, "batch_size": 999, "base_epochs": 1,
            "augment": False, "smoothing": smoothing, "warm_up": 0.0,
        }  # fmt: skip
        method = world.method(App, **config)
        domain, tower = world.domain(0), world.backbone.visual_copy()
        rows = method.class_means(world.domain(0))[0]
        f = F.layer_norm(tower(domain.images()), (DIM,)).tanh()
        log = (16 * F.normalize(f, dim=1) @ F.normalize(rows, dim=1).T).log_softmax(1)
        wanted = (1 - smoothing) * F.one_hot(domain.labels, 4) + smoothing / 4
        (-(wanted * log).sum(1).mean()).backward()
        method.train_tower(domain)
        for old, new in zip(tower.parameters(), method.tower.parameters(), strict=True):
            assert old.grad is not None
            clear = old.grad.abs() > 1e-4
            expected = old - 1e-3 * old.grad.sign()
            assert clear.any()
            torch.testing.assert_close(new[clear], expected[clear], atol=1e-5, rtol=0)


def test_the_rate_rises_and_falls(world: World) -> None:
    config = world.method(App, **FAST, warm_up=0.5).context.config
    rates = [config.rate(10, step) for step in range(10)]
    assert rates[:5] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])
    assert rates[5] == 1
    assert rates[5:] == sorted(rates[5:], reverse=True)
    assert rates[9] == pytest.approx((1 + np.cos(0.8 * np.pi)) / 2)


def test_rows_of_a_later_domain_are_trained_on_its_features(world: World) -> None:
    losses = []
    for iterations in (0, 200):
        method = world.method(App, **FAST | {"row_iterations": iterations})
        world.learn(method, 2)
        _, features, labels = method.class_means(world.domain(1))
        cosines = F.normalize(features, dim=1) @ F.normalize(method.rows[1], dim=1).T
        losses.append(float(F.cross_entropy(16 * cosines, labels)))
    assert losses[1] < losses[0]


def test_overwriting_forgets(world: World) -> None:
    method = world.learn(world.method(App, **FAST, rows="overwrite"))
    assert len(method.rows) == 1
    alone = world.method(App, **FAST)
    alone.load_state_dict(copied(method) | {"rows": method.rows[:0]})
    start, features, labels = alone.class_means(world.domain(2))
    assert torch.equal(alone.train_rows(start, features, labels, world.domain(2)), method.rows[0])


def test_what_is_trained(world: World) -> None:
    method = world.method(App, **FAST)
    tower = sum(weight.numel() for weight in method.tower.parameters())
    method.learn(world.domain(0))
    assert method.trained_parameters() == tower + 2 * DIM + len(CLASSES) * DIM
    for t in (1, 2):
        method.learn(world.domain(t))
        assert method.trained_parameters() == len(CLASSES) * DIM
    stored = sum(value.numel() for value in method.state_dict().values())
    assert stored == tower + 2 * DIM + 3 * len(CLASSES) * DIM
