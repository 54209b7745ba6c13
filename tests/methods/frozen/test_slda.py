from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.frozen.slda import StreamingLDA, oas
from fsdil_methods.frozen.zero_shot import ZeroShot
from sklearn.covariance import OAS
from tiny_world import CLASSES, DIM, World

C = len(CLASSES)


def batch_lda(
    z: np.ndarray, labels: np.ndarray, weights: np.ndarray, extra: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """LDA on all images at once; `extra` is scatter that no image explains."""
    means = np.stack([np.average(z[labels == c], 0, weights[labels == c]) for c in range(C)])
    centred = z - means[labels]
    covariance = ((weights[:, None] * centred).T @ centred + extra) / weights.sum()
    precision = np.linalg.inv((1 - eps) * covariance + eps * np.eye(DIM))
    return precision @ means.T, -0.5 * np.einsum("cd,de,ce->c", means, precision, means)


@pytest.mark.parametrize("eps", [1e-4, 1e-2])
def test_without_shrinkage_it_is_batch_lda(world: World, eps: float) -> None:
    method = world.learn(world.method(StreamingLDA, shrinkage="none", eps=eps))
    z, labels = world.seen()
    weights, bias = batch_lda(z, labels, np.ones(len(z)), np.zeros((DIM, DIM)), eps)
    np.testing.assert_allclose(method.weights.numpy(), weights, rtol=1e-6)
    np.testing.assert_allclose(method.bias.numpy(), bias, rtol=1e-6)
    tests = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    assert world.predict(method) == (tests @ weights + bias).argmax(1).tolist()


def test_shrinkage_is_that_of_the_base_domain(world: World) -> None:
    method = world.learn(world.method(StreamingLDA))
    base, base_labels = world.features(0)
    centred = base - np.stack([base[base_labels == c].mean(0) for c in range(C)])[base_labels]
    shrunk = OAS(assume_centered=True).fit(centred).covariance_
    extra = len(base) * shrunk - centred.T @ centred
    z, labels = world.seen()
    weights, bias = batch_lda(z, labels, np.ones(len(z)), extra, 1e-4)
    np.testing.assert_allclose(method.weights.numpy(), weights, rtol=1e-6)
    np.testing.assert_allclose(method.bias.numpy(), bias, rtol=1e-6)


def test_balanced_weighs_domains_the_same(world: World) -> None:
    method = world.learn(world.method(StreamingLDA, shrinkage="none", balanced=True))
    z, labels = world.seen()
    sizes = [len(world.domain(t)) for t in range(3)]
    each = np.repeat(1 / np.array(sizes), sizes)
    weights, _ = batch_lda(z, labels, each, np.zeros((DIM, DIM)), 1e-4)
    np.testing.assert_allclose(method.weights.numpy(), weights, rtol=1e-6)
    plain = world.learn(world.method(StreamingLDA, shrinkage="none"))
    assert np.abs(plain.weights.numpy() / weights - 1).max() > 0.01


def test_order_of_images_and_domains_does_not_matter(world: World) -> None:
    one, other = (world.method(StreamingLDA, shrinkage="none") for _ in range(2))
    for t in (0, 1, 2):
        one.learn(world.domain(t))
    for t in (1, 2, 0):
        other.learn(world.domain(t, reversed(range(len(world.domain(t))))))
    for name, value in one.state_dict().items():
        np.testing.assert_allclose(value.numpy(), other.state_dict()[name].numpy(), atol=1e-12)


@pytest.mark.parametrize("samples", [2, 5, 40])
def test_oas_is_scikit_learns(samples: int) -> None:
    x = np.random.default_rng(samples).normal(size=(samples, 6)) * np.arange(1, 7)
    ours = oas(torch.from_numpy(x.T @ x / samples), samples).numpy()
    np.testing.assert_allclose(ours, OAS(assume_centered=True).fit(x).covariance_, rtol=1e-10)


def test_a_mixture_with_zero_shot(world: World) -> None:
    method = world.learn(world.method(StreamingLDA, fuse=0.4))
    z = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    text = method.text.numpy()
    lda = z @ method.weights.numpy() + method.bias.numpy()
    posterior, p = (
        np.exp(logits - logits.max(1, keepdims=True))
        for logits in (lda, world.backbone.logit_scale * z @ text.T)
    )
    posterior, p = (x / x.sum(1, keepdims=True) for x in (posterior, p))
    assert world.predict(method) == (0.6 * p + 0.4 * posterior).argmax(1).tolist()


def test_the_ends_of_the_mixture(world: World) -> None:
    none, whole = (world.learn(world.method(StreamingLDA, fuse=share)) for share in (0.0, 1.0))
    assert world.predict(none) == world.predict(world.method(ZeroShot))
    assert whole.text is None
    nearly = world.learn(world.method(StreamingLDA, fuse=1 - 1e-9))
    assert world.predict(nearly) == world.predict(whole)
