from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.towers.shift_penalty import shift_clusters, shift_penalty

# Two of a kind, and one apart.
SHIFTS = [torch.tensor([1.0, 0.0, 0.1]), torch.tensor([1.1, 0.0, 0.0]), torch.tensor([0.0, 3.0, 1])]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_no_clusters_of_too_few_shifts() -> None:
    for count in range(3):
        assert shift_clusters(SHIFTS[:count], generator()) is None
    assert float(shift_penalty(torch.ones(3), None)) == 0


def test_no_shift_no_penalty() -> None:
    known = shift_clusters(SHIFTS, generator())
    for cosine in (False, True):
        assert float(shift_penalty(torch.zeros(3), known, cosine=cosine)) == 0


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize(
    ("delta", "others"), [([0.1, 2.0, 0.0], [0, 1]), ([0.9, 0.1, 0.0], [2]), ([2, 0.5, 1], [2])]
)
def test_shifts_of_the_other_clusters_count(
    delta: list[float], others: list[int], cosine: bool
) -> None:
    known = shift_clusters(SHIFTS, generator())
    d = np.array(delta)
    rows = np.stack([SHIFTS[i].numpy() for i in others])
    far = np.linalg.norm(d - rows, axis=1)
    products = rows @ d
    if cosine:
        products = products / np.linalg.norm(rows, axis=1) / np.linalg.norm(d)
    expected = abs((far / far.sum()) @ products)
    found = shift_penalty(torch.tensor(delta), known, cosine=cosine)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_following_its_gradient_makes_a_shift_orthogonal() -> None:
    known = shift_clusters(SHIFTS, generator())
    delta = torch.tensor([0.9, 0.3, 0.0], requires_grad=True)
    for _ in range(200):
        (gradient,) = torch.autograd.grad(shift_penalty(delta, known), delta)
        delta = (delta - 0.001 * gradient).detach().requires_grad_()
    assert float(delta.detach() @ SHIFTS[2]) == pytest.approx(0, abs=0.02)
