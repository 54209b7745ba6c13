from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.ewc import EWC, cut_off, diagonal_fisher
from plain_tower import learned_plainly
from tiny_world import World, copied, same

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}


def test_the_fisher_information_of_a_linear_gaussian_model() -> None:
    """y = x w + noise of variance 1: residuals of size 1 give the diagonal of X'X / n exactly."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    w = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
    signs = torch.randn(40, generator=generator, dtype=torch.float64).sign()
    y = (x @ w).detach() + signs
    losses = ((row @ w - target).square() / 2 for row, target in zip(x, y, strict=True))
    fisher = diagonal_fisher({"w": w}, losses)["w"]
    torch.testing.assert_close(fisher, (x.T @ x / 40).diag())


def test_it_is_of_single_images_and_of_labels_where_asked(world: World) -> None:
    """Against squared gradients written down one by one."""
    method = world.method(EWC, base_epochs=0, fisher="empirical", fisher_quantile=1.0)
    domain = world.domain(0)
    squares = []
    for image, label in zip(domain.images(), domain.labels, strict=True):
        z = F.normalize(method.tower(image[None]), dim=-1)
        loss = -(20.0 * z @ method.text.T).log_softmax(1)[0, label]
        squares.append(torch.autograd.grad(loss, method.tower[1].weight)[0].square())
    method.learn(world.domain(0))
    found = method.fishers[0]["tower.1.weight"]
    torch.testing.assert_close(found, torch.stack(squares).mean(0), rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("fisher", ["sampled", "empirical"])
def test_the_batch_size_does_not_matter(world: World, fisher: str) -> None:
    one, other = (
        world.method(EWC, base_epochs=0, fisher=fisher, batch_size=size) for size in (8, 16)
    )
    for method in (one, other):
        method.learn(world.domain(0))
    assert same(one.fishers[0], other.fishers[0])


def test_drawn_labels_come_from_the_prediction(world: World) -> None:
    """The expected square of the gradient under p(y | x), by all labels with their weights."""
    method = world.method(EWC, base_epochs=0, fisher_quantile=1.0)
    image = world.domain(1, [0]).images()
    logits = method.logits(method.tower(image))
    weights = {"w": method.tower[4].weight}
    expected = sum(
        p * torch.autograd.grad(F.cross_entropy(logits, torch.tensor([c])), weights["w"],
                                retain_graph=True)[0].square()
        for c, p in enumerate(logits.detach().softmax(1)[0])
    )  # fmt: skip
    losses = [
        loss
        for seed in range(200)
        for loss in _with_seed(method, seed)._losses(world.domain(1, [0]))
    ]
    found = diagonal_fisher(weights, losses)["w"]
    assert float((found - expected).abs().sum() / expected.abs().sum()) < 0.3


def _with_seed(method: Any, seed: int) -> Any:
    method.context = replace(method.context, seed=seed)
    return method


def test_high_values_are_cut_off() -> None:
    values = np.random.default_rng(0).exponential(size=1000)
    fisher = {"a": torch.tensor(values[:600]), "b": torch.tensor(values[600:])}
    cut = torch.cat(list(cut_off(fisher, 0.99).values())).numpy()
    limit = np.sort(values)[989]
    np.testing.assert_allclose(cut, np.minimum(values, limit))
    assert same(cut_off(fisher, 1.0), fisher)


@pytest.mark.parametrize("head", ["text", "linear"])
@pytest.mark.parametrize("mode", ["online", "separate"])
def test_without_strength_it_is_finetune(world: World, head: str, mode: str) -> None:
    one = world.learn(world.method(EWC, **FAST, strength=0.0, head=head, mode=mode))
    other = learned_plainly(world, head, **FAST)
    assert same({k: copied(one)[k] for k in copied(other)}, copied(other))


@pytest.mark.parametrize("mode", ["online", "separate"])
def test_the_penalty(world: World, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Zero when a domain begins; then as the formula says, around where each domain ended."""
    method = world.method(EWC, **FAST, strength=50.0, mode=mode, head="linear")
    ends, fishers, penalties = [], [], []
    inner = method.penalty

    def watching(*arguments: Any) -> Any:
        value = inner(*arguments)
        if value is not None:
            weights = method.weights()
            # The online form is around the last end, with the sum of all information (gamma 1).
            around = ends if mode == "separate" else ends[-1:] * len(fishers)
            terms = [
                (fisher[k] * (weights[k] - end[k]) ** 2).sum()
                for fisher, end in zip(fishers, around, strict=True)
                for k in weights
            ]
            penalties.append((float(value.detach()), 25 * float(sum(terms).detach())))
        return value

    monkeypatch.setattr(method, "penalty", watching)
    for t in range(3):
        first = len(penalties)
        method.learn(world.domain(t))
        if t == 1 or (t == 2 and mode == "online"):
            assert penalties[first][0] == 0
        ends.append({k: v.detach().clone() for k, v in method.weights().items()})
        fishers.append(_newest(method, fishers, mode))
    assert len(penalties) == 8
    for found, expected in penalties:
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-9)


def _newest(method: Any, before: list[Any], mode: str) -> dict[str, torch.Tensor]:
    """What the last domain added to the Fisher information."""
    if mode == "separate" or not before:
        return {k: v.clone() for k, v in method.fishers[-1].items()}
    return {k: v - sum(old[k] for old in before) for k, v in method.fishers[0].items()}


def test_old_information_fades(world: World) -> None:
    config = FAST | {"steps": 0, "base_epochs": 0}
    full, half, none = (
        world.learn(world.method(EWC, **config, gamma=gamma), upto=2) for gamma in (1.0, 0.5, 0.0)
    )
    base = world.learn(world.method(EWC, **config), upto=1).fishers[0]
    for key, first in base.items():
        last = none.fishers[0][key]
        torch.testing.assert_close(full.fishers[0][key], first + last)
        torch.testing.assert_close(half.fishers[0][key], 0.5 * first + last)


def test_great_strength_keeps_the_weights_that_matter(world: World) -> None:
    def moved(strength: float) -> float:
        config = FAST | {"steps": 30, "lr": 1e-3, "weight_decay": 0.0}
        method = world.learn(world.method(EWC, **config, strength=strength), upto=1)
        before = {k: v.detach().clone() for k, v in method.weights().items()}
        fisher = method.fishers[0]
        method.learn(world.domain(1))
        weights = method.weights()
        return float(sum((fisher[k] * (weights[k] - before[k]).square()).sum() for k in weights))

    assert moved(1e8) < 0.1 * moved(0.0)


def test_state_of_both_modes(world: World) -> None:
    weights = world.method(EWC).trained_parameters()
    for mode, sizes in (("online", [2, 2, 2]), ("separate", [3, 5, 7])):
        outcome = world.run(world.method(EWC, **FAST, mode=mode), mode)
        assert outcome.state_bytes == [4 * weights * size for size in sizes]
        assert outcome.trained_parameters == [weights] * 3


def test_a_sample_of_a_large_domain(world: World) -> None:
    method = world.method(EWC, fisher_images=7)
    assert len(list(method._losses(world.domain(0)))) == 7
    assert len(list(method._losses(world.domain(1)))) == 7
