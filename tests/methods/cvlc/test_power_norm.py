from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.power_norm import pn, unit


def plain(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.sign(x) * (np.abs(x) + 1e-8) ** alpha


@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.0, 1.7])
def test_formula(alpha: float) -> None:
    x = np.random.default_rng(0).normal(size=(5, 6))
    x[0, :3] = [0.0, 1e-9, -1e-9]
    found = pn(torch.tensor(x), torch.tensor(alpha, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found, plain(x, alpha), rtol=1e-12)
    assert found[0, 0] == 0


def test_gradients_are_finite_differences() -> None:
    x = np.random.default_rng(1).normal(size=(3, 4))
    up = np.random.default_rng(2).normal(size=(3, 4))
    inputs = torch.tensor(x, requires_grad=True)
    alpha = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    (torch.tensor(up) * pn(inputs, alpha)).sum().backward()
    h = 1e-6
    by_x = up * (plain(x + h, 0.8) - plain(x - h, 0.8)) / (2 * h)
    by_alpha = (up * (plain(x, 0.8 + h) - plain(x, 0.8 - h))).sum() / (2 * h)
    assert inputs.grad is not None
    assert alpha.grad is not None
    np.testing.assert_allclose(inputs.grad.numpy(), by_x, rtol=1e-6)
    np.testing.assert_allclose(alpha.grad.numpy(), by_alpha, rtol=1e-6)


def test_gradient_stays_finite_at_zero() -> None:
    x = torch.zeros(4, requires_grad=True)
    alpha = torch.tensor(0.8, requires_grad=True)
    pn(x, alpha).sum().backward()
    assert x.grad is not None
    assert alpha.grad is not None
    assert x.grad.tolist() == [0.0] * 4
    assert alpha.grad == 0


def test_authors_values(reference) -> None:
    data = reference("b_power_norm")
    x = torch.tensor(data["x"], requires_grad=True)
    for alpha, expected in zip(data["alphas"], data["y"], strict=True):
        found = pn(x, float(alpha)).detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    alpha = torch.tensor(0.8, requires_grad=True)
    pn(x, alpha).backward(torch.tensor(data["grad_out"]))
    assert x.grad is not None
    assert alpha.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), data["grad_x_alpha08"], rtol=1e-5)
    np.testing.assert_allclose(alpha.grad.numpy(), data["grad_alpha_alpha08"], rtol=1e-5)


def test_unit() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e-13, 4e-13]], dtype=torch.float64)
    np.testing.assert_allclose(unit(x).numpy(), [[0.6, 0.8], [0, 0], [0.3, 0.4]])
