from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.correction import correct

C, D = 4, 6


def plain(stored: np.ndarray, before: np.ndarray, after: np.ndarray, gamma: float) -> np.ndarray:
    moved = []
    for p in stored:
        norms = np.linalg.norm(before, axis=1) * np.linalg.norm(p)
        weights = np.exp(gamma * (before @ p) / norms)
        weights /= weights.sum()
        moved.append(p + sum(w * d for w, d in zip(weights, after - before, strict=True)))
    return np.stack(moved)


@pytest.fixture
def prototypes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(2 * C, D)), rng.normal(size=(C, D)), rng.normal(size=(C, D))


@pytest.mark.parametrize("gamma", [0.0, 1.0, 10.0])
def test_formula(prototypes, gamma: float) -> None:
    stored, before, after = prototypes
    found = correct(*map(torch.tensor, prototypes), gamma).numpy()
    np.testing.assert_allclose(found, plain(stored, before, after, gamma), rtol=1e-9)
    stacked = torch.tensor(stored.reshape(2, C, D))
    stacked = correct(stacked, torch.tensor(before), torch.tensor(after), gamma)
    np.testing.assert_allclose(stacked.numpy().reshape(2 * C, D), found)


def test_without_a_move_nothing_changes(prototypes) -> None:
    stored, before, _ = map(torch.tensor, prototypes)
    assert torch.equal(correct(stored, before, before), stored)


def test_default_gamma_is_ten_and_a_sharp_one_follows_the_most_similar(prototypes) -> None:
    stored, before, after = map(torch.tensor, prototypes)
    assert torch.equal(correct(stored, before, after), correct(stored, before, after, 10.0))
    moved = correct(before, before, after, 1e4)
    np.testing.assert_allclose(moved.numpy(), after.numpy(), rtol=1e-9)


def test_authors_values(reference) -> None:
    data = {
        name: torch.tensor(array) for name, array in reference("e_prototype_correction").items()
    }
    current = data["domain_ids"] == data["current_domain"]
    assert torch.equal(data["stored_before"][current], data["stored_after"][current])
    moved = correct(
        data["stored_before"][~current],
        data["new_before"],
        data["stored_before"][current],
        float(data["gamma"]),
    )
    expected = data["stored_after"][~current].numpy()
    np.testing.assert_allclose(moved.numpy(), expected, rtol=1e-5, atol=1e-6)
