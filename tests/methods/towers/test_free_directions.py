from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.towers.free_directions import Directions, all_free, free_part, strongest, take

WIDTH = 12


def moments(rank: int, seed: int, within: torch.Tensor | None = None) -> torch.Tensor:
    """C of random inputs in `rank` directions with very different strengths."""
    generator = torch.Generator().manual_seed(seed)
    basis = torch.randn(WIDTH, rank, generator=generator, dtype=torch.float64)
    if within is not None:
        basis = within @ torch.randn(within.shape[1], rank, generator=generator).double()
    inputs = basis * 2.0 ** -torch.arange(rank)
    return inputs @ inputs.T


def taken(known: Directions) -> torch.Tensor:
    """The projection onto what is taken."""
    inside = known.basis @ known.basis.T
    return torch.eye(WIDTH, dtype=torch.float64) - inside if known.are_free else inside


def is_orthonormal(known: Directions) -> bool:
    gram = known.basis.T @ known.basis
    return torch.allclose(gram, torch.eye(len(gram), dtype=torch.float64), atol=1e-10)


def test_the_first_domain_takes_the_strongest_until_the_share_is_reached() -> None:
    c = moments(8, 0)
    values = np.linalg.svd(c.numpy())[1] ** 2
    for share in (0.5, 0.9, 0.999):
        known = take(all_free(WIDTH), c, share)
        expected = int(np.searchsorted(np.cumsum(values) / values.sum(), share)) + 1
        assert known.basis.shape == (WIDTH, expected)
        assert not known.are_free
        assert (taken(known) @ c).square().sum() >= share * c.square().sum()
        assert is_orthonormal(known)


def test_the_energy_is_that_of_the_moments_not_of_the_inputs() -> None:
    """Singular values of C are squares of those of the inputs, so fewer directions are taken."""
    inputs = torch.diag(torch.tensor([2.0, 1.9, 1.0, 0.5], dtype=torch.float64))
    known = take(Directions(torch.zeros(4, 0).double(), False), inputs @ inputs, 0.95)
    assert known.basis.shape[1] == 2  # shares of C: 0.53, 0.97; of the inputs: 0.45, 0.86, 0.97


@pytest.mark.parametrize("share", [0.8, 0.95, 0.999])
def test_taken_directions_grow_and_reach_the_share(share: float) -> None:
    """Through the change from keeping what is taken to keeping what is free."""
    known, kinds = all_free(WIDTH), []
    for t in range(8):
        c = moments(4, t)
        before = taken(known)
        known = take(known, c, share)
        kinds.append(known.are_free)
        assert is_orthonormal(known)
        assert 2 * known.basis.shape[1] <= WIDTH
        assert torch.allclose(taken(known) @ before, before, atol=1e-9), "nothing is given back"
        assert (taken(known) @ c).square().sum() >= (share - 1e-9) * c.square().sum()
    assert kinds == sorted(kinds)
    assert kinds[0] is False
    assert kinds[-1] is True


def test_both_ways_of_keeping_are_the_same() -> None:
    """The same directions once as taken ones, once as the free rest."""
    q = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(1))).Q
    q, c = q.double(), moments(9, 2)
    q = torch.linalg.qr(q).Q
    one, other = Directions(q[:, :5], False), Directions(q[:, 5:], True)
    assert torch.allclose(free_part(one, c), free_part(other, c), atol=1e-10)
    rows = [strongest(known, c, 3) for known in (one, other)]
    assert torch.allclose(rows[0].T @ rows[0], rows[1].T @ rows[1], atol=1e-8)
    after = [taken(take(known, c, 0.97)) for known in (one, other)]
    assert torch.allclose(*after, atol=1e-8)


def test_no_direction_more_than_needed() -> None:
    """Inputs inside what is taken take nothing."""
    known = take(all_free(WIDTH), moments(4, 0), 1.0)
    again = take(known, moments(3, 5, within=known.basis), 0.99)
    assert torch.allclose(taken(again), taken(known), atol=1e-10)
    assert again.basis.shape == known.basis.shape


def test_everything_can_be_taken() -> None:
    known = take(all_free(WIDTH), torch.eye(WIDTH, dtype=torch.float64), 1.0)
    assert known.are_free
    assert known.basis.shape == (WIDTH, 0)
    assert not strongest(known, moments(5, 1), 3).any(), "nothing is left to learn with"
    again = take(known, moments(5, 1), 0.9)
    assert again.basis.shape == (WIDTH, 0)


def test_new_directions_are_free_even_where_the_inputs_have_too_few() -> None:
    known = take(all_free(WIDTH), moments(4, 0), 1.0)
    assert known.basis.shape[1] == 4
    rows = strongest(known, moments(2, 1), 6)
    assert rows.shape == (6, WIDTH)
    assert (rows @ known.basis).abs().max() < 1e-9
    inputs = moments(2, 1)
    inside = free_part(known, inputs)
    assert torch.allclose(rows[:2].T @ (rows[:2] @ inside), inside, atol=1e-9)
