"""Domain identification: which domain does a test image come from?

CVLC, inference. z are embeddings of the frozen encoder. The domain is the one with the smallest

    gaussian       (z - mu_t)' V_t^-1 (z - mu_t)                the paper: one Gaussian per domain
    class-pooled   min_k (z - mu_tk)' S_k^-1 (z - mu_tk)        a mean per domain and class
    authors        min_k (z - mu_tk)' S_k (z - mu_tk)           as released: S_k is not inverted

where V_t and V_tk are unbiased covariances + 1e-3 I and S_k is the mean of V_tk over the domains.
Without the ridge the few images of a K-shot domain would make V_t singular.

All rules measure the length of A (z - mu): A is the inverse of the Cholesky factor L of the
covariance, or L' itself where it is not inverted. A mapped mean is precomputed, so a query costs
one product with A for each domain (gaussian) or class (the others).

The authors also use different embeddings for statistics and for queries (PowerNorm and, for half of
the views, adapted encoders only in the statistics). That depends on the embeddings passed in.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

from .reservation import class_gaussians, gaussian

Rule = Literal["gaussian", "class-pooled", "authors"]


class DomainStatistics(NamedTuple):
    """What is stored of the domains seen so far."""

    means: torch.Tensor  # gaussian: (T, d); other rules: (T, C, d)
    covariances: torch.Tensor  # gaussian: (T, d, d); other rules: (C, d, d), mean over domains


class Metric(NamedTuple):
    """The statistics in a form for queries; it follows from them and need not be stored."""

    maps: torch.Tensor  # A, shape of the covariances
    centres: torch.Tensor  # A mu, shape of the means


def add_domain(
    statistics: DomainStatistics | None,
    z: torch.Tensor,
    labels: torch.Tensor,
    classes: int,
    rule: Rule = "gaussian",
    weights: torch.Tensor | None = None,
) -> DomainStatistics:
    """Statistics with one more domain; `statistics` is None before the first."""
    if rule == "gaussian":
        mean, covariance = gaussian(z, weights)
        covariance = covariance[None]
    else:
        mean, covariance = class_gaussians(z, labels, classes, weights)
    if statistics is None:
        return DomainStatistics(mean[None], covariance)
    means = torch.cat([statistics.means, mean[None]])
    if rule == "gaussian":
        return DomainStatistics(means, torch.cat([statistics.covariances, covariance]))
    return DomainStatistics(means, torch.lerp(statistics.covariances, covariance, 1 / len(means)))


def make_metric(statistics: DomainStatistics, rule: Rule = "gaussian") -> Metric:
    """Factor the covariances."""
    means, covariances = statistics
    maps = torch.empty_like(covariances)
    for i, covariance in enumerate(covariances):
        factor = torch.linalg.cholesky(covariance.double())
        maps[i] = factor.T if rule == "authors" else _inverse(factor)
    # The map belongs to the domain, or to the class: the axis before the last of either shape.
    return Metric(maps, torch.einsum("gde,...ge->...gd", maps, means))


def distances(z: torch.Tensor, metric: Metric) -> torch.Tensor:
    """Squared distance of every query to every domain, (n, T)."""
    maps, centres = metric
    if centres.ndim == 2:
        return (z @ maps.mT - centres[:, None]).square().sum(-1).T
    nearest = z.new_full((len(z), len(centres)), torch.inf)
    for k in range(len(maps)):  # one by one: the offsets to all classes would be too large
        offsets = (z @ maps[k].T)[:, None] - centres[:, k]
        nearest = torch.minimum(nearest, offsets.square().sum(-1))
    return nearest


def identify(z: torch.Tensor, metric: Metric) -> torch.Tensor:
    """The nearest domain of every query, (n,)."""
    return distances(z, metric).argmin(1)


def _inverse(factor: torch.Tensor) -> torch.Tensor:
    identity = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, identity, upper=False)
