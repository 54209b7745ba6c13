from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fsdil_methods.frozen.rail import RAIL, absorb
from fsdil_methods.frozen.rail_dual import DualRAIL
from fsdil_methods.frozen.sample_weights import sample_weights
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import BASE, CLASSES, DIM, World

C = len(CLASSES)


def omega(world: World, weighting: str) -> np.ndarray:
    """The formula of every weighting, image by image."""
    found = []
    for t in range(3):
        labels = world.features(t)[1]
        each = {"count": 1.0, "domain": 16 * C / len(labels)}
        found += [each.get(weighting, 16 / (labels == c).sum()) for c in labels]
    return np.array(found)


def batch_ridge(h: np.ndarray, labels: np.ndarray, omega: np.ndarray, ridge: float) -> np.ndarray:
    weighted = omega[:, None] * h
    return np.linalg.solve(
        weighted.T @ h + ridge * np.eye(h.shape[1]), weighted.T @ np.eye(C)[labels]
    )


@pytest.mark.parametrize("weighting", ["count", "domain", "cell"])
@pytest.mark.parametrize("size", [0, 50])
def test_the_recursion_is_batch_ridge(world: World, weighting: str, size: int) -> None:
    method = world.learn(world.method(RAIL, projection_size=size, weighting=weighting))
    z, labels = world.seen()
    h = z if not size else np.maximum(z @ method.projection.numpy(), 0)
    wanted = batch_ridge(h, labels, omega(world, weighting), 0.1)
    np.testing.assert_allclose(method.weights.numpy(), wanted, atol=1e-8)


def test_the_order_of_later_domains_does_not_matter(world: World) -> None:
    one, other = (world.method(RAIL, projection_size=40) for _ in range(2))
    for t in (0, 1, 2):
        one.learn(world.domain(t))
    for t in (0, 2, 1):
        other.learn(world.domain(t, reversed(range(len(world.domain(t))))))
    torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [RAIL, DualRAIL])
def test_without_a_share_it_is_zero_shot(world: World, kind: type) -> None:
    method = world.learn(world.method(kind, fusion=0.0))
    assert world.predict(method) == world.predict(world.method(ZeroShot))
    assert world.predict(world.learn(world.method(kind, fusion=1.0))) != world.predict(method)


def test_the_mixture(world: World) -> None:
    method = world.learn(world.method(RAIL, projection_size=0, fusion=0.3))
    z = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    logits = world.backbone.logit_scale * z @ method.text.numpy().T
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = (0.7 * p + 0.3 * z @ method.weights.numpy()).argmax(1)
    assert world.predict(method) == wanted.tolist()


@pytest.mark.parametrize("weighting", ["count", "cell"])
def test_the_linear_kernel_is_the_plain_primal(world: World, weighting: str) -> None:
    options: dict[str, Any] = {"ridge": 0.1, "weighting": weighting}
    primal = world.learn(world.method(RAIL, projection_size=0, **options))
    dual = world.learn(world.method(DualRAIL, kernel="linear", base_images=BASE, **options))
    torch.testing.assert_close(dual.kept.T @ dual.alpha, primal.weights, rtol=0, atol=1e-10)
    assert world.predict(dual) == world.predict(primal)


def test_the_gaussian_kernel(world: World) -> None:
    method = world.method(DualRAIL, gamma=0.7)
    x, y = torch.randn(5, DIM).double(), torch.randn(3, DIM).double()
    wanted = (-0.7 * torch.cdist(x, y).square()).exp()
    torch.testing.assert_close(method._kernel(x, y), wanted)


def test_the_dual_keeps_few_images_of_the_base_domain(world: World) -> None:
    method = world.method(DualRAIL, base_images=4)
    method.learn(world.domain(0))
    assert method.labels.bincount().tolist() == [4] * C
    z = torch.from_numpy(world.features(0)[0])
    assert (torch.cdist(method.kept, z).amin(1) < 1e-6).all()


@pytest.fixture
def solved() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(6, 5, generator=generator).double()
    targets = torch.eye(3).double()[torch.arange(6) % 3]
    start = torch.eye(5).double(), torch.zeros(5, 3).double()
    return (*absorb(*start, rows, targets, torch.ones(6).double()), rows, targets)


def test_a_sample_of_weight_one_is_two_of_half_the_weight(solved: tuple[torch.Tensor, ...]) -> None:
    inverse, weights, rows, targets = solved
    once = absorb(inverse, weights, rows[:2], targets[:2], torch.tensor([1.0, 1.0]).double())
    again = torch.tensor([0, 1, 0])
    shares = torch.tensor([0.5, 1.0, 0.5]).double()
    twice = absorb(inverse, weights, rows[again], targets[again], shares)
    torch.testing.assert_close(once, twice, rtol=0, atol=1e-12)


def test_a_domain_without_weight_changes_nothing(solved: tuple[torch.Tensor, ...]) -> None:
    inverse, weights, rows, targets = solved
    after = absorb(inverse, weights, 3 * rows, targets.flip(0), torch.zeros(6).double())
    torch.testing.assert_close(after, (inverse, weights), rtol=0, atol=1e-12)


def test_a_narrower_projection_is_as_long(world: World) -> None:
    """The mean squared length of h does not depend on M, so that the ridge means the same."""
    z = torch.from_numpy(world.features(0)[0])
    lengths = [
        world.method(RAIL, projection_size=size)._project(z).square().sum(1).mean()
        for size in (500, 4000)
    ]
    assert abs(lengths[0] / lengths[1] - 1) < 0.2


def test_weights_sum_to_sixteen_per_cell() -> None:
    labels = torch.tensor([0, 0, 0, 1])
    assert sample_weights(labels, 2, "cell").tolist() == [16 / 3] * 3 + [16]
    assert sample_weights(labels, 2, "domain").sum() == 32
    assert sample_weights(labels, 2, "count").sum() == 4
