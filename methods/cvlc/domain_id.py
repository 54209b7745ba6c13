"""Domain identification: which domain does a test image come from?

CVLC, inference. z are embeddings of the frozen encoder. The domain is the one with the smallest

    gaussian       (z - mu_t)' V_t^-1 (z - mu_t)                the paper: one Gaussian per domain
    class-pooled   min_k (z - mu_tk)' S_k^-1 (z - mu_tk)        a mean per domain and class
    authors        min_k (z - mu_tk)' S_k (z - mu_tk)           as released: S_k is not inverted
    gaussian-logdet   (z - mu_t)' V_t^-1 (z - mu_t) + ln |V_t|     the most likely Gaussian
    gaussian-common   (z - mu_t)' V^-1 (z - mu_t)                  one covariance for all domains

where V_t and V_tk are unbiased covariances + 1e-3 I and S_k is the mean of V_tk over the domains.
Without the ridge the few images of a K-shot domain would make V_t singular.

The last two are not the paper's. Without ln |V_t| a broad Gaussian is near everything: that of the
base domain, with all its images, draws images from all others. The rule `gaussian-logdet` compares
densities instead; `gaussian-common` has nothing to compare but means, under
V = 0.9 S + 0.1 (tr S / d) I with the mean S of V_t over the domains.

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

Rule = Literal["gaussian", "class-pooled", "authors", "gaussian-logdet", "gaussian-common"]
_OWN_COVARIANCES = ("gaussian", "gaussian-logdet")  # one for every domain
_SHRINKAGE = 0.1  # of the common covariance


class DomainStatistics(NamedTuple):
    """What is stored of the domains seen so far."""

    means: torch.Tensor  # gaussian rules: (T, d); other rules: (T, C, d)
    covariances: torch.Tensor  # gaussian, -logdet: (T, d, d); means over domains: (1 or C, d, d)


class Metric(NamedTuple):
    """The statistics in a form for queries; it follows from them and need not be stored."""

    maps: torch.Tensor  # A, shape of the covariances
    centres: torch.Tensor  # A mu, shape of the means
    offsets: torch.Tensor | None = None  # what is added to the distances, (T,)


def add_domain(
    statistics: DomainStatistics | None,
    z: torch.Tensor,
    labels: torch.Tensor,
    classes: int,
    rule: Rule = "gaussian",
    weights: torch.Tensor | None = None,
) -> DomainStatistics:
    """Statistics with one more domain; `statistics` is None before the first."""
    if rule.startswith("gaussian"):
        mean, covariance = gaussian(z, weights)
        covariance = covariance[None]
    else:
        mean, covariance = class_gaussians(z, labels, classes, weights)
    if statistics is None:
        return DomainStatistics(mean[None], covariance)
    means = torch.cat([statistics.means, mean[None]])
    if rule in _OWN_COVARIANCES:
        return DomainStatistics(means, torch.cat([statistics.covariances, covariance]))
    return DomainStatistics(means, torch.lerp(statistics.covariances, covariance, 1 / len(means)))


def make_metric(statistics: DomainStatistics, rule: Rule = "gaussian") -> Metric:
    """Factor the covariances."""
    means, covariances = statistics
    maps, log_dets = torch.empty_like(covariances), []
    for i, covariance in enumerate(covariances):
        if rule == "gaussian-common":
            covariance = _shrunk(covariance)
        factor = torch.linalg.cholesky(covariance.double())
        maps[i] = factor.T if rule == "authors" else _inverse(factor)
        log_dets.append(2 * factor.diagonal().log().sum().to(means.dtype))
    # The map belongs to the domain, or to the class: the axis before the last of either shape. A
    # common one has 1 there.
    centres = torch.einsum("gde,...ge->...gd", maps, means)
    return Metric(maps, centres, torch.stack(log_dets) if rule == "gaussian-logdet" else None)


def distances(z: torch.Tensor, metric: Metric) -> torch.Tensor:
    """Squared distance of every query to every domain, (n, T), with the offsets of the domains."""
    maps, centres, offsets = metric
    if centres.ndim == 2:
        squares = (z @ maps.mT - centres[:, None]).square().sum(-1).T
        return squares if offsets is None else squares + offsets
    nearest = z.new_full((len(z), len(centres)), torch.inf)
    for k in range(len(maps)):  # one by one: the steps to all classes would be too large
        steps = (z @ maps[k].T)[:, None] - centres[:, k]
        nearest = torch.minimum(nearest, steps.square().sum(-1))
    return nearest


def identify(z: torch.Tensor, metric: Metric) -> torch.Tensor:
    """The nearest domain of every query, (n,)."""
    return distances(z, metric).argmin(1)


def _inverse(factor: torch.Tensor) -> torch.Tensor:
    identity = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, identity, upper=False)


def _shrunk(covariance: torch.Tensor) -> torch.Tensor:
    size = len(covariance)
    identity = torch.eye(size, dtype=covariance.dtype, device=covariance.device)
    return torch.lerp(covariance, covariance.trace() / size * identity, _SHRINKAGE)
