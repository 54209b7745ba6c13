from __future__ import annotations

import numpy as np
import torch
from fsdil_methods.moments import class_means, merged, moments, total, within_class
from fsdil_methods.resampling import draw, factors, shrunk, shrunk_within

C, D = 3, 4


def sample(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(size=(n, D))), torch.tensor(np.arange(n) % C)


def test_covariances_are_numpys() -> None:
    z, labels = sample(14, 0)
    found = moments(z, labels, C)
    rows, classes = z.numpy(), labels.numpy()
    np.testing.assert_allclose(total(found), np.cov(rows.T), atol=1e-12)
    scatter = sum(np.cov(rows[classes == c].T) * (sum(classes == c) - 1) for c in range(C))
    np.testing.assert_allclose(within_class(found), scatter / (14 - C), atol=1e-12)
    means = np.stack([rows[classes == c].mean(0) for c in range(C)])
    np.testing.assert_allclose(class_means(found), means, atol=1e-12)


def test_parts_merge_exactly() -> None:
    (a, la), (b, lb) = sample(9, 1), sample(5, 2)
    both = moments(torch.cat([a, b]), torch.cat([la, lb]), C)
    for one, other in zip(merged(moments(a, la, C), moments(b, lb, C)), both, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_one_image_per_class_has_no_spread() -> None:
    z, labels = sample(C, 3)
    found = moments(z, labels, C)
    assert found.freedom() == 0
    assert not within_class(found).any()
    assert not total(moments(z[:1], labels[:1], C)).any()


def test_few_images_borrow_the_base_domains_shape() -> None:
    z, labels = sample(300, 4)
    base = within_class(moments(z, labels, C))
    ridge = 1e-4 * base.trace() / D * torch.eye(D)
    few = moments(*sample(C, 5), C)
    torch.testing.assert_close(shrunk_within(few, base), base + ridge)
    some = moments(*sample(64, 6), C)  # as many as the base domain counts for: half and half
    wanted = (within_class(some) + base) / 2 + ridge
    torch.testing.assert_close(shrunk_within(some, base), wanted)
    torch.testing.assert_close(shrunk(base, 10**9, base), base + ridge)


def test_resampled_moments_are_the_stored_ones() -> None:
    """Within the error of 40,000 draws."""
    z, _ = sample(50, 7)
    covariance = torch.cov(z.T) + torch.diag(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    mean = torch.arange(D).double()
    generator = torch.Generator().manual_seed(0)
    drawn = draw(mean.expand(40_000, D), factors(covariance), generator)
    assert (drawn.mean(0) - mean).abs().max() < 0.05
    assert (torch.cov(drawn.T) - covariance).abs().max() < 0.15


def test_every_row_may_have_a_factor_of_its_own() -> None:
    generator = torch.Generator().manual_seed(0)
    wide = torch.stack([torch.zeros(D, D), torch.eye(D)])
    drawn = draw(torch.ones(2, D), wide, generator)
    assert torch.equal(drawn[0], torch.ones(D))
    assert not torch.equal(drawn[1], torch.ones(D))
