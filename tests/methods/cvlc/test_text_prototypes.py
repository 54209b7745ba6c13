from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.text_prototypes import over_templates, synonym_weights, text_prototypes

C, SYNONYMS, TEMPLATES, D = 3, 4, 2, 6


def n(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def plain(names: np.ndarray, synonyms: np.ndarray, share: float, tau: float) -> np.ndarray:
    rows = []
    for name, others in zip(names, synonyms, strict=True):
        own = n(name.mean(0))
        units = [n(other.mean(0)) for other in others]
        strength = np.array([np.exp(own @ other / tau) for other in units])
        mean = sum(s * other for s, other in zip(strength / strength.sum(), units, strict=True))
        rows.append(n(share * mean + (1 - share) * own))
    return np.stack(rows)


@pytest.fixture
def embeddings() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(C, TEMPLATES, D)), rng.normal(size=(C, SYNONYMS, TEMPLATES, D))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, 1.2])
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_formula(embeddings, share: float, tau: float) -> None:
    names, synonyms = embeddings
    found = text_prototypes(torch.tensor(names), torch.tensor(synonyms), share, tau)
    np.testing.assert_allclose(found.numpy(), plain(names, synonyms, share, tau), rtol=1e-9)


def test_without_synonyms_or_share_only_templates_count(embeddings) -> None:
    names, synonyms = embeddings
    expected = n(n(names.mean(1)))
    alone = text_prototypes(torch.tensor(names))
    unused = text_prototypes(torch.tensor(names), torch.tensor(synonyms), 0.0)
    np.testing.assert_allclose(alone.numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(unused.numpy(), expected, rtol=1e-9)


def test_high_temperature_weighs_synonyms_the_same(embeddings) -> None:
    names, synonyms = (over_templates(torch.tensor(part)) for part in embeddings)
    flat = synonym_weights(names, synonyms, 1e9)
    np.testing.assert_allclose(flat.numpy(), 1 / SYNONYMS, rtol=1e-8)
    sharp = synonym_weights(names, synonyms, 1e-3)
    closest = torch.einsum("cd,cod->co", names, synonyms).argmax(1)
    assert torch.equal(sharp.argmax(1), closest)
    assert float(sharp.amax(1).min()) > 0.9


def test_gradients(embeddings) -> None:
    names, synonyms = embeddings
    up = np.random.default_rng(1).normal(size=(C, D))
    inputs = torch.tensor(names, requires_grad=True)
    others = torch.tensor(synonyms, requires_grad=True)
    share = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    (torch.tensor(up) * text_prototypes(inputs, others, share, 0.5)).sum().backward()
    assert others.grad is None
    assert inputs.grad is not None
    assert share.grad is not None

    def loss(names: np.ndarray, share: float = 0.4) -> float:
        return float((up * plain(names, synonyms, share, 0.5)).sum())

    h = 1e-6
    for place in [(0, 0, 0), (1, 1, 3), (2, 0, 5)]:
        step = np.zeros_like(names)
        step[place] = h
        difference = (loss(names + step) - loss(names - step)) / (2 * h)
        assert float(inputs.grad[place]) == pytest.approx(difference, rel=1e-5)
    difference = (loss(names, 0.4 + h) - loss(names, 0.4 - h)) / (2 * h)
    assert float(share.grad) == pytest.approx(difference, rel=1e-5)


def test_authors_values(reference) -> None:
    data = reference("c_text_prototypes")
    names, synonyms = torch.tensor(data["emb_names"]), torch.tensor(data["emb_synonyms"])
    weights = synonym_weights(over_templates(names), over_templates(synonyms))
    np.testing.assert_allclose(weights.numpy(), data["weights"], rtol=1e-5)
    for share, expected in zip(data["lambda_syn"], data["prototypes_with_synonyms"], strict=True):
        found = text_prototypes(names, synonyms, float(share)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found = text_prototypes(names).numpy()
    np.testing.assert_allclose(found, data["prototypes_templates_only"], rtol=1e-5, atol=1e-6)
