from __future__ import annotations

import torch
from fsdil_methods.towers.shift_experts import expert_branch, fit_detector, watching, z_scores

WIDTH, RANK = 12, 3


def some(count: int, seed: int = 0, away: float = 0.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, WIDTH, generator=generator) + away


def test_a_detector_is_the_best_linear_auto_encoder() -> None:
    means = some(40)
    found = fit_detector(means, RANK)
    around = means - means.mean(0)
    vectors = torch.linalg.eigh(around.T @ around).eigenvectors
    best = vectors[:, -RANK:]
    errors = (around - around @ best @ best.T).norm(dim=1)
    assert torch.allclose(found["error"][0], errors.mean(), atol=1e-4)
    assert torch.allclose(found["error"][1], errors.std(correction=0), atol=1e-4)
    assert found["basis"].shape == (RANK, WIDTH)


def test_its_own_domain_has_no_z_score_and_another_has_a_large_one() -> None:
    detector = fit_detector(some(40), RANK)
    scores = z_scores(some(40), [detector])
    assert abs(float(scores.mean())) < 1e-4
    assert float(z_scores(some(40, seed=1), [detector]).mean()) < 2
    assert float(z_scores(some(40, seed=1, away=3.0), [detector]).mean()) > 2


def test_few_images_leave_an_error() -> None:
    for count in (1, 2, 3, 6):
        found = fit_detector(some(count), RANK)
        assert all(torch.isfinite(value).all() for value in found.values())
        assert float(found["error"][1]) > 0
        assert int(found["basis"].any(1).sum()) == min(RANK, (count - 1) // 2)


def test_the_gate_is_a_softmax_of_z_scores() -> None:
    detectors = [fit_detector(some(40), RANK), fit_detector(some(40, away=1.0), RANK)]
    experts = [{"down": some(5, seed=k), "up": some(5, seed=9 + k).T} for k in range(2)]
    x = some(12, seed=5).view(3, 4, WIDTH)
    gates = (-z_scores(x.mean(1), detectors)).softmax(1)
    expected = sum(
        gates[:, k, None, None] * ((x @ e["down"].T).relu() @ e["up"].T)
        for k, e in enumerate(experts)
    )
    branch = expert_branch(experts, detectors)
    assert torch.allclose(branch(x), expected, atol=1e-4)  # type: ignore[arg-type]
    seen: list[torch.Tensor] = []
    assert torch.equal(watching(branch, seen)(x), branch(x))
    assert torch.equal(seen[0], x.mean(1))
