"""Features drawn from what is remembered of a domain, where few images cannot give a covariance.

A domain of N images with the covariance S borrows the base domain's S_1:

    Sigma = (1 - rho) S + rho S_1 + eps I,      rho = 64 / (64 + N),  eps = 1e-4 tr(S_1) / d

With few shots rho is near 1: the base domain lends its shape, the shots say where. A covariance of
K images spans these images; mixed like this it is a statistic that does not give them back.

Class cells take within-class matrices and are drawn around class means; domains as a whole take
total covariances and the domain's mean.
"""

from __future__ import annotations

import torch

from .moments import Moments, within_class

STRENGTH = 64
_LEAST = 1e-8  # of the ridge, for a base domain without any spread


def shrunk(own: torch.Tensor, samples: int, base: torch.Tensor) -> torch.Tensor:
    """Sigma, (d, d); `samples` = 0 says that `own` is not known at all."""
    share = STRENGTH / (STRENGTH + samples)
    mixed = torch.lerp(own, base, share)
    ridge = max(1e-4 * float(base.trace()) / len(base), _LEAST)
    return mixed + ridge * torch.eye(len(base), dtype=base.dtype, device=base.device)


def shrunk_within(sums: Moments, base: torch.Tensor | None = None) -> torch.Tensor:
    """Sigma of class cells; without the matrix S_1 of the base domain, `sums` are the base."""
    own = within_class(sums)
    return shrunk(own, sums.size() if sums.freedom() else 0, own if base is None else base)


def factors(covariances: torch.Tensor) -> torch.Tensor:
    """Cholesky factors (..., d, d), in the precision of the covariances."""
    return torch.linalg.cholesky(covariances.double()).to(covariances.dtype)


def draw(means: torch.Tensor, factors: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One feature (n, d) around each mean; one factor (d, d) for all, or (n, d, d)."""
    noise = torch.randn(means.shape, generator=generator).to(means)
    return means + (factors @ noise[..., None]).squeeze(-1)
