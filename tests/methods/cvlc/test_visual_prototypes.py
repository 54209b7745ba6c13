from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.visual_prototypes import (
    INITIAL_LOG_SCALE,
    class_means,
    fuse,
    initial_weights,
    logits,
    passes,
    stored_prototypes,
)

C, D = 3, 5


def n(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_fusion(rng: np.random.Generator) -> None:
    own, text, base = rng.normal(size=(C, D)), n(rng.normal(size=(C, D))), rng.normal(size=(C, D))
    first = n(0.7 * n(own) + 0.3 * text)
    found = fuse(torch.tensor(own), torch.tensor(text), 0.6, 0.7)
    np.testing.assert_allclose(found.numpy(), first)
    later = n(0.7 * n(0.6 * own + 0.4 * base) + 0.3 * text)
    found = fuse(torch.tensor(own), torch.tensor(text), 0.6, 0.7, torch.tensor(base))
    np.testing.assert_allclose(found.numpy(), later)


def test_base_prototypes_are_constants(rng: np.random.Generator) -> None:
    own, text, base = (torch.tensor(rng.normal(size=(C, D)), requires_grad=True) for _ in range(3))
    shares = torch.full((2,), 0.5, dtype=torch.float64, requires_grad=True)
    (fuse(own, text, shares[0], shares[1], base) * torch.arange(D)).sum().backward()
    assert base.grad is None
    assert own.grad is not None
    assert text.grad is not None
    assert shares.grad is not None
    assert (shares.grad != 0).all()


@pytest.mark.parametrize("log_scale", [INITIAL_LOG_SCALE, 6.0])
def test_logits(rng: np.random.Generator, log_scale: float) -> None:
    z, prototypes = rng.normal(size=(4, D)), n(rng.normal(size=(C, D)))
    expected = min(math.exp(log_scale), 100) * n(z) @ prototypes.T
    rho = torch.tensor(log_scale, dtype=torch.float64, requires_grad=True)
    found = logits(torch.tensor(z), torch.tensor(prototypes), rho)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9)
    found.sum().backward()
    assert rho.grad is not None
    below_cap = expected.sum() if math.exp(log_scale) < 100 else 0.0
    assert float(rho.grad) == pytest.approx(below_cap)


def test_initial_scale_and_weights() -> None:
    assert math.exp(INITIAL_LOG_SCALE) == pytest.approx(1 / 0.07)
    weights = initial_weights(50, 100, torch.Generator().manual_seed(0))
    assert weights.shape == (50, 100)
    assert float(weights.std()) == pytest.approx(0.01, rel=0.05)


def test_stored_prototypes(rng: np.random.Generator) -> None:
    means, text = 2 * rng.normal(size=(C, D)), n(rng.normal(size=(C, D)))
    share = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    found = stored_prototypes(torch.tensor(means), torch.tensor(text), share)
    assert not found.requires_grad
    # The means are not normalised before they are mixed.
    np.testing.assert_allclose(found.numpy(), n(0.6 * means + 0.4 * text))
    visual = stored_prototypes(torch.tensor(means), torch.tensor(text), share, False)
    np.testing.assert_allclose(visual.numpy(), n(means))


def test_weighted_means_are_means_over_repeated_rows(rng: np.random.Generator) -> None:
    z, labels = rng.normal(size=(7, D)), np.array([0, 1, 2, 0, 1, 2, 2])
    weights = np.array([1, 2, 3, 4, 1, 2, 5])
    rows, repeated = np.repeat(z, weights, 0), np.repeat(labels, weights)
    expected = [rows[repeated == k].mean(0) for k in range(C)]
    arguments = (torch.tensor(z), torch.tensor(labels), C)
    np.testing.assert_allclose(class_means(*arguments, torch.tensor(weights)).numpy(), expected)
    plain = [z[labels == k].mean(0) for k in range(C)]
    np.testing.assert_allclose(class_means(*arguments).numpy(), plain)


def test_a_class_without_images_is_refused() -> None:
    with pytest.raises(ValueError, match="class 1"):
        class_means(torch.ones(2, D), torch.tensor([0, 2]), C)


def test_a_plain_view_encoded_once_counts_for_every_pass(rng: np.random.Generator) -> None:
    plain, augmented = rng.normal(size=(6, D)), rng.normal(size=(4, 6, D))
    labels = np.array([0, 1, 2, 0, 1, 2])
    # Four passes, each with both views of every image.
    z = np.concatenate([np.concatenate([view, plain]) for view in augmented])
    repeated = np.tile(labels, 8)
    expected = [z[repeated == k].mean(0) for k in range(C)]
    once = torch.tensor(np.concatenate([plain, *augmented]))
    weights = torch.tensor([4.0] * 6 + [1.0] * 24)
    found = class_means(once, torch.tensor(np.tile(labels, 5)), C, weights)
    np.testing.assert_allclose(found.numpy(), expected)


def test_passes() -> None:
    assert [passes(shots) for shots in (1, 2, 4, 5, 8, 60, 200)] == [100, 50, 25, 20, 12, 1, 1]
