from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc import reservation
from fsdil_methods.cvlc.reservation import (
    Gaussians,
    Mixtures,
    Originals,
    blend,
    class_gaussians,
    divergences,
    draw_mixtures,
    gaussian,
    prepare,
    reserve,
    similarity_scores,
)

from fsdil_bench import RequestError

C, D = 4, 5
DOUBLE = torch.zeros((), dtype=torch.float64)


def kl(mean_p: np.ndarray, cov_p: np.ndarray, mean_q: np.ndarray, cov_q: np.ndarray) -> float:
    """KL(p || q) of two Gaussians, as in a textbook."""
    inverse, offset = np.linalg.inv(cov_q), mean_q - mean_p
    ratio = np.log(np.linalg.det(cov_q) / np.linalg.det(cov_p))
    return 0.5 * (np.trace(inverse @ cov_p) + offset @ inverse @ offset + ratio - len(offset))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def gaussians() -> Gaussians:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(C, D, D))
    covariances = 0.1 * roots @ roots.transpose(0, 2, 1) + 1e-3 * np.eye(D)
    return Gaussians(torch.tensor(rng.normal(size=(C, D))), torch.tensor(covariances))


@pytest.fixture
def originals(gaussians: Gaussians) -> Originals:
    return prepare(gaussians)


def test_class_gaussians_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    z, labels, weights = rng.normal(size=(20, D)), np.arange(20) % C, rng.integers(1, 5, 20)
    found = class_gaussians(torch.tensor(z), torch.tensor(labels), C, torch.tensor(weights))
    unweighted = class_gaussians(torch.tensor(z), torch.tensor(labels), C)
    for k in range(C):
        rows = np.repeat(z[labels == k], weights[labels == k], 0)
        np.testing.assert_allclose(found.means[k], rows.mean(0))
        covariance = np.cov(rows.T) + 1e-3 * np.eye(D)
        np.testing.assert_allclose(found.covariances[k], covariance, rtol=1e-9)
        covariance = np.cov(z[labels == k].T) + 1e-3 * np.eye(D)
        np.testing.assert_allclose(unweighted.covariances[k], covariance, rtol=1e-9)


def test_a_single_row_has_the_ridge_as_covariance() -> None:
    mean, covariance = gaussian(torch.ones(1, D))
    assert mean.tolist() == [1.0] * D
    np.testing.assert_allclose(covariance.numpy(), 1e-3 * np.eye(D))


def test_a_class_without_images_is_refused() -> None:
    with pytest.raises(ValueError, match="class 1"):
        class_gaussians(torch.ones(2, D), torch.tensor([0, 2]), 3)


def test_pairs_are_distinct_ordered_and_uniform() -> None:
    first, second, share = draw_mixtures(C, 12000, seeded(), DOUBLE)
    counts = np.zeros((C, C))
    np.add.at(counts, (first.numpy(), second.numpy()), 1)
    assert np.diag(counts).sum() == 0
    off_diagonal = counts[~np.eye(C, dtype=bool)]
    assert off_diagonal.min() > 850
    assert off_diagonal.max() < 1150
    quartiles = np.quantile(share.numpy(), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(quartiles, [0.25, 0.5, 0.75], atol=0.02)
    with pytest.raises(ValueError, match="two classes"):
        draw_mixtures(1, 3, seeded(), DOUBLE)


def test_blend(gaussians: Gaussians) -> None:
    mixtures = Mixtures(
        torch.tensor([2, 0]), torch.tensor([1, 3]), torch.tensor([0.3, 0.9]).double()
    )
    covariances = gaussians.covariances.numpy()
    found = blend(gaussians.covariances, mixtures).numpy()
    for row, (i, j, a) in zip(found, [(2, 1, 0.3), (0, 3, 0.9)], strict=True):
        np.testing.assert_allclose(row, a * covariances[i] + (1 - a) * covariances[j], rtol=1e-6)
    labels = blend(torch.eye(C).double(), mixtures).numpy()
    np.testing.assert_allclose(labels, [[0, 0.7, 0.3, 0], [0.9, 0, 0, 0.1]], rtol=1e-6)


@pytest.mark.parametrize("norm", ["l2", "raw", "authors"])
def test_similarity_scores(norm: reservation.Norm) -> None:
    means = np.random.default_rng(2).normal(size=(7, D))
    length = {
        "l2": lambda x: np.sqrt((x**2).sum()),
        "raw": lambda x: 1.0,
        "authors": lambda x: 1 / (1 / np.abs(x)).sum(),
    }[norm]
    scaled = [x / length(x) for x in means]
    expected = [
        sum(float(a @ b) for j, b in enumerate(scaled) if j != i) for i, a in enumerate(scaled)
    ]
    found = similarity_scores(torch.tensor(means), norm)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_divergences_are_sums_over_classes(gaussians: Gaussians, originals: Originals) -> None:
    mixtures = draw_mixtures(C, 6, seeded(), DOUBLE)
    means, raw = blend(gaussians.means, mixtures), blend(gaussians.covariances, mixtures)
    load = 1e-3 * np.eye(D)
    expected = [
        sum(
            kl(mean_k, cov_k + load, mean, covariance + load)
            for mean_k, cov_k in zip(*(part.numpy() for part in gaussians), strict=True)
        )
        for mean, covariance in zip(means.numpy(), raw.numpy(), strict=True)
    ]
    factors = torch.linalg.cholesky(blend(originals.covariances, mixtures))
    found = divergences(originals, means, factors)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_divergence_of_identical_gaussians_is_zero(gaussians: Gaussians) -> None:
    same = Gaussians(gaussians.means[:1].repeat(C, 1), gaussians.covariances[:1].repeat(C, 1, 1))
    originals = prepare(same, ridge=0.0)
    factors = torch.linalg.cholesky(same.covariances[:1])
    assert float(divergences(originals, same.means[:1], factors)) == pytest.approx(0, abs=1e-9)
    assert float(divergences(originals, same.means[:1] + 1, factors)) > 1


@pytest.mark.parametrize("norm", ["l2", "raw", "authors"])
def test_choice_by_brute_force(gaussians: Gaussians, norm: reservation.Norm) -> None:
    """Replay the draw, and choose with plain formulas and sorting."""
    originals = prepare(gaussians)
    sizes = {"candidates": 30, "distinct_candidates": 6, "pseudo_classes": 3, "pseudo_samples": 2}
    _, found = reserve(originals, seeded(4), **sizes, norm=norm)
    mixtures = draw_mixtures(C, 30, seeded(4), DOUBLE)
    means = blend(gaussians.means, mixtures)
    covariances = blend(originals.covariances, mixtures).numpy()
    scores = similarity_scores(means, norm).numpy()
    distinct = sorted(range(30), key=lambda i: scores[i])[:6]

    def divergence(i: int) -> float:
        return sum(
            kl(mean, covariance, means[i].numpy(), covariances[i])
            for mean, covariance in zip(
                originals.means.numpy(), originals.covariances.numpy(), strict=True
            )
        )

    kept = sorted(distinct, key=divergence)[-3:]
    expected = blend(torch.eye(C).double(), mixtures)[kept]
    assert set(map(tuple, found.tolist())) == set(map(tuple, expected.tolist()))


def test_the_norms_choose_differently(originals: Originals) -> None:
    norms: tuple[reservation.Norm, ...] = ("l2", "raw", "authors")
    # Only the first filter depends on the norm, so the second one lets everything pass.
    labels = [
        reserve(originals, seeded(4), distinct_candidates=8, pseudo_classes=8, norm=norm)[1]
        for norm in norms
    ]
    chosen = [set(map(tuple, label.tolist())) for label in labels]
    assert all(a != b for a, b in itertools.combinations(chosen, 2))


def test_samples_follow_the_mixture_with_double_load(gaussians: Gaussians) -> None:
    # One candidate of two classes: its label tells the share, and with it mean and covariance.
    two = Gaussians(gaussians.means[:2], gaussians.covariances[:2])
    sizes = {
        "candidates": 1,
        "distinct_candidates": 1,
        "pseudo_classes": 1,
        "pseudo_samples": 200_000,
    }
    vectors, labels = reserve(prepare(two), seeded(), **sizes)
    share = labels[0].numpy()
    assert (labels == labels[0]).all()
    np.testing.assert_allclose(vectors.numpy().mean(0), share @ two.means.numpy(), atol=0.01)
    # The estimate already carries one load; a large second one shows that sampling adds it.
    expected = np.tensordot(share, two.covariances.numpy(), 1) + 1e-3 * np.eye(D)
    np.testing.assert_allclose(np.cov(vectors.numpy().T), expected, atol=0.02)
    vectors, _ = reserve(prepare(two, ridge=5.0), seeded(), **sizes)
    np.testing.assert_allclose(
        np.cov(vectors.numpy().T), expected + (5.0 - 1e-3) * np.eye(D), atol=0.1
    )


def test_shapes_labels_and_seeds(originals: Originals) -> None:
    vectors, labels = reserve(originals, seeded(7))
    assert vectors.shape == (40, D)
    assert labels.shape == (40, C)
    np.testing.assert_allclose(labels.sum(1).numpy(), 1)
    assert ((labels > 0).sum(1) == 2).all()
    assert (labels.view(4, 10, C) == labels.view(4, 10, C)[:, :1]).all()
    again, other = reserve(originals, seeded(7)), reserve(originals, seeded(8))
    assert torch.equal(again[0], vectors)
    assert torch.equal(again[1], labels)
    assert not torch.equal(other[0], vectors)
    state = torch.get_rng_state()
    reserve(originals, seeded(7))
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(RequestError, match="5 candidates, 8 distinct candidates"):
        reserve(originals, seeded(), candidates=5, distinct_candidates=8)


def test_single_precision_is_enough_for_many_dimensions() -> None:
    rng = np.random.default_rng(3)
    labels = torch.arange(90) % 3
    z = torch.tensor(rng.normal(size=(90, 128))) + torch.tensor(rng.normal(size=(3, 128)))[labels]
    z = 1.5 * z / z.norm(dim=1, keepdim=True)
    results = []
    for kind in (torch.float32, torch.float64):
        originals = prepare(class_gaussians(z.to(kind), labels, 3))
        mixtures = draw_mixtures(3, 5, seeded(), originals.means)
        factors = torch.linalg.cholesky(blend(originals.covariances, mixtures))
        results.append(divergences(originals, blend(originals.means, mixtures), factors).double())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-3)
