"""Latent space reservation: pseudo-classes between the base classes leave room for later domains.

CVLC, base domain only. Every class k is a Gaussian N(mu_k, V_k) of frozen embeddings. At every
training iteration

    1. mix         draw candidates: ordered pairs of classes (i, j) and a ~ U(0, 1), with the mean
                   a mu_i + (1-a) mu_j, covariance a V_i + (1-a) V_j, label a e_i + (1-a) e_j
    2. distinct    keep the candidates with the smallest sum of similarities to the other ones
    3. pseudo      of these, keep the candidates with the largest sum_k KL( N_k || candidate )
    4. sample      draw a few embeddings of each, which join the batch under the mixed label

Covariances are unbiased and get 1e-3 I when estimated, and 1e-3 I again both in the divergence and
in sampling (paper: 1/N and no load, singular for d > N). The shares of a mixture sum to 1, so the
load of a mixture is that of its classes and can be added once, beforehand.

The similarity of step 2 is a dot product of the means, which are

    l2        scaled to unit length: a cosine (default; what the authors meant)
    raw       taken as they are (the paper's equation)
    authors   divided by (sum_i 1/|x_i|)^-1, because their code passes -1 as order of the norm

Step 3 needs no loop over the classes. With m the mean of the mu_k and the matrix

    M = sum_k V_k + sum_k (mu_k - m)(mu_k - m)'

the sum of divergences from C classes to a candidate N(u, U) is exactly

    1/2 [ tr(U^-1 M) + C (u-m)' U^-1 (u-m) + C ln|U| - sum_k ln|V_k| - C d ]

and the Cholesky factor of U is used in step 4 again.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F

from fsdil_bench import RequestError

from .power_norm import unit

RIDGE = 1e-3

Norm = Literal["l2", "raw", "authors"]


class Gaussians(NamedTuple):
    """One Gaussian per class."""

    means: torch.Tensor  # (C, d)
    covariances: torch.Tensor  # (C, d, d)


class Originals(NamedTuple):
    """The classes as reservation needs them at every iteration."""

    means: torch.Tensor  # (C, d), mu_k
    covariances: torch.Tensor  # (C, d, d), V_k with the second load
    centre: torch.Tensor  # (d,), m
    spread: torch.Tensor  # (d, d), M
    log_det: torch.Tensor  # (), sum_k ln|V_k|


class Mixtures(NamedTuple):
    """Pairs of classes, and the share of the first."""

    first: torch.Tensor  # (n,)
    second: torch.Tensor  # (n,)
    share: torch.Tensor  # (n,)


def gaussian(
    z: torch.Tensor, weights: torch.Tensor | None = None, ridge: float = RIDGE
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (d,) and unbiased covariance (d, d) + ridge I of rows; a weight w is w equal rows."""
    rows = z.double()
    counts = torch.ones_like(rows[:, 0]) if weights is None else weights.to(rows)
    mean = counts @ rows / counts.sum()
    centred = rows - mean
    # A single row has no spread: its covariance is only the ridge.
    freedom = (counts.sum() - 1).clamp(min=1)
    covariance = (counts[:, None] * centred).T @ centred / freedom
    covariance.diagonal().add_(ridge)
    return mean.to(z.dtype), covariance.to(z.dtype)


def class_gaussians(
    z: torch.Tensor,
    labels: torch.Tensor,
    classes: int,
    weights: torch.Tensor | None = None,
    ridge: float = RIDGE,
) -> Gaussians:
    """Mean and covariance of every class; each class needs an image."""
    size = z.shape[1]
    result = Gaussians(z.new_empty(classes, size), z.new_empty(classes, size, size))
    for k in range(classes):
        members = labels == k
        if not bool(members.any()):
            raise ValueError(f"no image of class {k}")
        own = None if weights is None else weights[members]
        result.means[k], result.covariances[k] = gaussian(z[members], own, ridge)
    return result


def prepare(gaussians: Gaussians, ridge: float = RIDGE) -> Originals:
    """All that depends only on the classes; `gaussians` is not needed after this."""
    covariances = gaussians.covariances.clone()
    covariances.diagonal(dim1=1, dim2=2).add_(ridge)
    means = gaussians.means.double()
    centre = means.mean(0)
    spread = (means - centre).T @ (means - centre)
    log_det = spread.new_zeros(())
    for covariance in covariances:  # one by one: hundreds at once would not fit into memory
        spread += covariance
        log_det += torch.logdet(covariance.double())
    kind = gaussians.means.dtype
    return Originals(
        gaussians.means, covariances, centre.to(kind), spread.to(kind), log_det.to(kind)
    )


def draw_mixtures(
    classes: int, count: int, generator: torch.Generator, like: torch.Tensor
) -> Mixtures:
    """Ordered pairs of two different classes, uniformly, with uniform shares; placed as `like`."""
    if classes < 2:
        raise ValueError(f"a mixture needs two classes, but there is {classes}")
    home = generator.device
    first = torch.randint(classes, (count,), generator=generator, device=home)
    step = torch.randint(1, classes, (count,), generator=generator, device=home)
    share = torch.rand(count, generator=generator, device=home)
    second = (first + step) % classes
    return Mixtures(first.to(like.device), second.to(like.device), share.to(like))


def blend(values: torch.Tensor, mixtures: Mixtures) -> torch.Tensor:
    """a values_i + (1-a) values_j, for a quantity that every class has."""
    share = mixtures.share.view(-1, *[1] * (values.ndim - 1))
    return torch.lerp(values[mixtures.second], values[mixtures.first], share)


def similarity_scores(means: torch.Tensor, norm: Norm = "l2") -> torch.Tensor:
    """Sum of every candidate's similarities to the others."""
    if norm == "l2":
        means = unit(means)
    elif norm == "authors":
        means = F.normalize(means, p=-1.0, dim=-1)
    return (means @ means.T).fill_diagonal_(0).sum(1)


def divergences(originals: Originals, means: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """sum_k KL(N_k || candidate), (n,); `factors` are Cholesky factors of their covariances."""
    classes, size = originals.means.shape
    inverses = torch.cholesky_inverse(factors)
    offsets = means - originals.centre
    trace = (inverses * originals.spread).sum((1, 2))
    distance = (offsets[:, None] @ inverses).squeeze(1).mul(offsets).sum(1)
    log_det = 2 * factors.diagonal(dim1=1, dim2=2).log().sum(1)
    constant = originals.log_det + classes * size
    return (trace + classes * (distance + log_det) - constant) / 2


@torch.no_grad()
def reserve(
    originals: Originals,
    generator: torch.Generator,
    *,
    candidates: int = 100,
    distinct_candidates: int = 8,
    pseudo_classes: int = 4,
    pseudo_samples: int = 10,
    norm: Norm = "l2",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pseudo-embeddings (n, d) and their soft labels (n, C), n = pseudo_classes * pseudo_samples.

    `distinct_candidates` remain after the comparison with each other, `pseudo_classes` of these
    after the comparison with the classes.
    """
    if not candidates >= distinct_candidates >= pseudo_classes >= 1:
        raise RequestError(
            f"{candidates} candidates, {distinct_candidates} distinct candidates and "
            f"{pseudo_classes} pseudo-classes: each number is chosen from the one before it",
            "Set candidates >= distinct_candidates >= pseudo_classes.",
        )
    classes, size = originals.means.shape
    mixtures = draw_mixtures(classes, candidates, generator, originals.means)
    means = blend(originals.means, mixtures)
    chosen = similarity_scores(means, norm).topk(distinct_candidates, largest=False).indices
    # Only from here on are covariances needed, so only few are ever formed.
    mixtures, means = Mixtures(*(part[chosen] for part in mixtures)), means[chosen]
    factors = torch.linalg.cholesky(blend(originals.covariances, mixtures))
    chosen = divergences(originals, means, factors).topk(pseudo_classes).indices
    shape = (pseudo_classes, pseudo_samples, size)
    noise = torch.randn(shape, generator=generator, device=generator.device)
    vectors = means[chosen, None] + noise.to(means) @ factors[chosen].mT
    labels = blend(torch.eye(classes).to(means), Mixtures(*(part[chosen] for part in mixtures)))
    return vectors.flatten(0, 1), labels.repeat_interleave(pseudo_samples, 0)
