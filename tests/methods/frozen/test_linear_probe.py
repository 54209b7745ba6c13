from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fsdil_methods.frozen.linear_probe import DECAYS, LinearProbe
from fsdil_methods.frozen.zero_shot import ZeroShot
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from tiny_world import CLASSES, DIM, World, copied, same

from fsdil_bench import RequestError

C = len(CLASSES)


@pytest.mark.parametrize("decay", [1e-1, 1e-3])
def test_the_base_domain_is_solved_as_by_scikit_learn(world: World, decay: float) -> None:
    method = world.learn(world.method(LinearProbe, decay=decay), upto=1)
    z, labels = world.features(0)
    model = LogisticRegression(C=1 / (decay * len(z)), tol=1e-8, max_iter=5000).fit(z, labels)
    np.testing.assert_allclose(method.weight.numpy(), model.coef_, atol=1e-3)
    bias = method.bias.numpy()  # free up to a constant
    np.testing.assert_allclose(
        bias - bias.mean(), model.intercept_ - model.intercept_.mean(), atol=1e-3
    )


def test_no_steps_from_text_is_zero_shot(world: World) -> None:
    method = world.method(LinearProbe, init="text", base_iterations=0, steps=0)
    zero_shot = world.predict(world.method(ZeroShot))
    assert world.predict(world.learn(method)) == zero_shot
    learned = world.method(LinearProbe, init="text")
    assert world.predict(world.learn(learned)) != zero_shot


def test_the_decay_pulls_towards_the_text(world: World) -> None:
    """At the optimum the gradient of the cross-entropy is the pull, which text does not vanish."""
    method = world.method(LinearProbe, init="text", decay=0.05)
    start = method.weight.double().numpy()
    world.learn(method, upto=1)
    z, labels = world.features(0)
    weight, bias = method.weight.double().numpy(), method.bias.double().numpy()
    error = softmax(z @ weight.T + bias, axis=1) - np.eye(C)[labels]
    np.testing.assert_allclose(error.T @ z / len(z), -0.05 * (weight - start), atol=1e-5)


def test_later_domains_take_gradient_steps(world: World) -> None:
    method = world.learn(world.method(LinearProbe, decay=1e-2, steps=3, lr=0.7), upto=1)
    weight, bias = method.weight.double().numpy(), method.bias.double().numpy()
    z, labels = world.features(1)
    for _ in range(3):
        error = (softmax(z @ weight.T + bias, axis=1) - np.eye(C)[labels]) / len(z)
        weight, bias = weight - 0.7 * error.T @ z, bias - 0.7 * error.sum(0)
    method.learn(world.domain(1))
    np.testing.assert_allclose(method.weight.numpy(), weight, atol=1e-5)
    np.testing.assert_allclose(method.bias.numpy(), bias, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "changes"), [({}, True), ({"steps": 0}, False), ({"mode": "base-only"}, False)]
)
def test_what_changes_after_the_base(world: World, config: dict[str, Any], changes: bool) -> None:
    method = world.learn(world.method(LinearProbe, decay=1e-2, **config), upto=1)
    before = copied(method)
    method.learn(world.domain(1))
    assert same(before, copied(method)) is not changes


def test_the_decay_is_the_best_on_held_out_images(world: World) -> None:
    method = world.learn(world.method(LinearProbe), upto=1)
    z, labels = world.features(0)
    order = torch.randperm(len(z), generator=method.context.generator("decay")).numpy()
    held, fit = order[: len(z) // 5], order[len(z) // 5 :]

    def loss(decay: float) -> float:
        model = LogisticRegression(C=1 / (decay * len(fit)), tol=1e-6, max_iter=2000)
        logits = model.fit(z[fit], labels[fit]).decision_function(z[held])
        return -float(log_softmax(logits, axis=1)[np.arange(len(held)), labels[held]].mean())

    chosen = method.diagnostics()["decay"]
    assert chosen in DECAYS
    assert chosen == min(DECAYS, key=loss)


def test_counts_its_parameters_and_asks_for_text(world: World) -> None:
    assert world.method(LinearProbe).trained_parameters() == C * DIM + C
    blind = World(world.folder / "blind", text=False)
    with pytest.raises(RequestError, match="init = text needs a text tower"):
        blind.method(LinearProbe, init="text")
