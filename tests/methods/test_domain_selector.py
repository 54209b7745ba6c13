from __future__ import annotations

import pytest
import torch
from fsdil_methods.domain_selector import (
    DomainSelector,
    Mixture,
    one_gaussian,
    resampled,
    total_covariance,
    two_gaussians,
)
from fsdil_methods.resampling import factors
from tiny_world import same

D = 6


def clouds(count: int, each: int, seed: int) -> list[torch.Tensor]:
    """Domains that are far from each other, of Gaussian shape."""
    generator = torch.Generator().manual_seed(seed)
    centres = 4 * torch.eye(D)[:count]
    return [c + 0.5 * torch.randn(each, D, generator=generator) for c in centres]


def learned(domains: list[torch.Tensor]) -> DomainSelector:
    selector = DomainSelector(D, torch.device("cpu"))
    for t, z in enumerate(domains):
        selector.add_domain(z, torch.Generator().manual_seed(t))
    return selector


def test_one_domain_is_the_answer() -> None:
    (z,) = clouds(1, 30, 0)
    selector = learned([z])
    assert selector.route(100 * torch.randn(20, D)).tolist() == [0] * 20
    assert selector.trained_parameters() == 0


def test_separate_domains_are_told_apart_after_the_last() -> None:
    base, *later = clouds(4, 200, 1)
    selector = learned([base, *(z[:5] for z in later)])
    held_out = clouds(4, 500, 2)
    right = [float((selector.route(z) == t).float().mean()) for t, z in enumerate(held_out)]
    assert min(right) > 0.99
    assert selector.trained_parameters() == (D + 1) * 4  # 513 T at d = 512


def test_drawn_features_have_the_stored_moments() -> None:
    """Within the error of 60,000 draws."""
    generator = torch.Generator().manual_seed(3)
    z = torch.cat([clouds(2, 300, 4)[0], clouds(2, 100, 5)[1]])
    mixture = two_gaussians(z, generator)
    drawn = resampled(mixture, factors(mixture.covariances), 60_000, generator)
    mean = mixture.shares @ mixture.means
    torch.testing.assert_close(mean, z.mean(0), atol=1e-5, rtol=0)
    assert (drawn.mean(0) - mean).abs().max() < 0.05
    assert (torch.cov(drawn.T) - total_covariance(mixture).float()).abs().max() < 0.15
    assert mixture.shares.sum() == pytest.approx(1)


def test_few_images_borrow_the_shape_of_the_base_domain() -> None:
    base_z, few = clouds(2, 400, 6)
    base = two_gaussians(base_z, torch.Generator().manual_seed(0))
    own = one_gaussian(few[:3], base)
    torch.testing.assert_close(own.means[0], few[:3].mean(0))
    share = 64 / (64 + 3)
    spread = total_covariance(base)
    wanted = (1 - share) * torch.cov(few[:3].double().T) + share * spread
    wanted += 1e-4 * spread.trace() / D * torch.eye(D)
    torch.testing.assert_close(own.covariances[0], wanted.float())
    alone = one_gaussian(few[:1], base)
    assert torch.linalg.eigvalsh(alone.covariances[0]).min() > 0


def test_a_state_is_all_there_is() -> None:
    domains = clouds(3, 20, 7)
    whole, first = learned(domains), learned(domains[:2])
    resumed = DomainSelector(D, torch.device("cpu"))
    resumed.load_state_dict(first.state_dict())
    resumed.add_domain(domains[2], torch.Generator().manual_seed(2))
    assert same(whole.state_dict(), resumed.state_dict())
    assert all(isinstance(mixture, Mixture) for mixture in resumed.mixtures)
    assert [len(mixture.means) for mixture in resumed.mixtures] == [2, 1, 1]
