"""Recognising domains by a trained classifier, on features drawn from what is kept of old domains.

SOYO, Wang et al., Boosting Domain Incremental Learning: Selecting the Optimal Parameters Is All You
Need, CVPR 2025. A domain is compressed into Gaussians of its frozen features. When a new domain
comes, a linear classifier of domains is trained on features of all domains seen,

    cross-entropy( W x + b, t ),   x = (z - m) / sd,      domain = argmax_t (W x + b)_t

those of old domains being drawn from their Gaussians. It grows by one row for every domain and
continues from what it was.

What is kept: the base domain is a mixture of two Gaussians with full covariances. A few-shot domain
is one Gaussian, its covariance shrunk towards the base domain's (`resampling.py`).

Different from the original:
- The mixture is fitted by K-means, each image counting for one component only. The original gives
  every domain two components: with two images these would be the images themselves.
- 300 steps with equal shares of all domains, instead of epochs over as many features as the new
  domain has images. Half of the new domain's share are its images, half is drawn from its Gaussian.
- Inputs are standardised by mean and deviation (one number) of the base domain, since CLIP's
  features have most of their length in common.
- Only domains seen so far have an output.
- The paper also fuses features of several layers. The released code does not, nor does this.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from fsdil_bench import State

from .prompts.kmeans_router import kmeans
from .resampling import draw, factors, shrunk

STEPS = 300
BATCH = 128  # features per step, of all domains together
_LR, _MOMENTUM, _DECAY = 0.1, 0.9, 2e-4


class Mixture(NamedTuple):
    """The Gaussians that a domain is compressed into."""

    shares: torch.Tensor  # (k,)
    means: torch.Tensor  # (k, d)
    covariances: torch.Tensor  # (k, d, d)


class DomainSelector:
    """A linear classifier of domains that grows with them."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.mixtures: list[Mixture] = []
        self.centre = torch.zeros(size, device=device)
        self.deviation = torch.ones((), device=device)
        self.weight = torch.zeros(0, size, device=device)
        self.bias = torch.zeros(0, device=device)

    def add_domain(self, z: torch.Tensor, generator: torch.Generator) -> None:
        """Learn to tell the domain of features (n, d) from those before, and compress it."""
        if not self.mixtures:
            self.centre = z.mean(0)
            self.deviation = (z - self.centre).square().mean().sqrt().clamp(min=1e-6)
            self.mixtures.append(two_gaussians(z, generator))
        else:
            self.mixtures.append(one_gaussian(z, self.mixtures[0]))
        self.weight = torch.cat([self.weight, self.weight.new_zeros(1, len(self.centre))])
        self.bias = torch.cat([self.bias, self.bias.new_zeros(1)])
        if len(self.mixtures) > 1:
            self._train(z, generator)

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        """Of all domains seen, (n, T)."""
        return F.linear((z - self.centre) / self.deviation, self.weight, self.bias)

    def route(self, z: torch.Tensor) -> torch.Tensor:
        """The most likely domain of every feature, (n,)."""
        return self.logits(z).argmax(1)

    def trained_parameters(self) -> int:
        """Weights and biases; nothing is trained while there is one domain."""
        return self.weight.numel() + self.bias.numel() if len(self.bias) > 1 else 0

    def state_dict(self) -> State:
        """The classifier, and the mixtures of all domains."""
        kept = {name: getattr(self, name) for name in ("centre", "deviation", "weight", "bias")}
        mixtures = {
            f"{t}.{name}": value
            for t, mixture in enumerate(self.mixtures)
            for name, value in mixture._asdict().items()
        }
        return kept | mixtures

    def load_state_dict(self, state: State) -> None:
        """Load copies."""
        copies = {name: value.clone() for name, value in state.items()}
        self.centre, self.deviation = copies["centre"], copies["deviation"]
        self.weight, self.bias = copies["weight"], copies["bias"]
        self.mixtures = [
            Mixture(*(copies[f"{t}.{name}"] for name in Mixture._fields))
            for t in range(len(self.bias))
        ]

    def _train(self, z: torch.Tensor, generator: torch.Generator) -> None:
        count = len(self.mixtures)
        share = max(2, BATCH // count)
        sources = [(mixture, factors(mixture.covariances)) for mixture in self.mixtures]
        labels = torch.arange(count, device=z.device).repeat_interleave(share)
        weight, bias = (p.clone().requires_grad_() for p in (self.weight, self.bias))
        optimizer = torch.optim.SGD([weight, bias], _LR, _MOMENTUM, weight_decay=_DECAY)
        for step in range(STEPS):
            parts = [resampled(*source, share, generator) for source in sources]
            own = torch.randint(len(z), (share // 2,), generator=generator).to(z.device)
            parts[-1] = torch.cat([z[own], parts[-1][share // 2 :]])
            x = (torch.cat(parts) - self.centre) / self.deviation
            optimizer.param_groups[0]["lr"] = _LR * (1 + math.cos(math.pi * step / STEPS)) / 2
            optimizer.zero_grad()
            F.cross_entropy(F.linear(x, weight, bias), labels).backward()
            optimizer.step()
        self.weight, self.bias = weight.detach(), bias.detach()


def two_gaussians(z: torch.Tensor, generator: torch.Generator) -> Mixture:
    """The mixture of a base domain, from features (n, d)."""
    points = z.double()
    centres = kmeans(points, 2, generator)
    nearest = torch.cdist(points, centres).argmin(1)
    spread, parts = _covariance(points), []
    for k in nearest.unique().tolist():
        own = points[nearest == k]
        covariance = shrunk(_covariance(own), len(own), spread)
        parts.append((own.new_tensor(len(own) / len(z)), own.mean(0), covariance))
    return Mixture(*(torch.stack(part).to(z.dtype) for part in zip(*parts, strict=True)))


def one_gaussian(z: torch.Tensor, base: Mixture) -> Mixture:
    """The Gaussian of a few-shot domain, which borrows its shape from the base domain."""
    points = z.double()
    covariance = shrunk(_covariance(points), len(z) if len(z) > 1 else 0, total_covariance(base))
    parts = points.new_ones(1), points.mean(0)[None], covariance[None]
    return Mixture(*(part.to(z.dtype) for part in parts))


def total_covariance(mixture: Mixture) -> torch.Tensor:
    """The covariance of all that is drawn from a mixture, in double precision."""
    shares, means, covariances = (part.double() for part in mixture)
    offsets = means - shares @ means
    return torch.einsum("k,kde->de", shares, covariances) + (shares[:, None] * offsets).T @ offsets


def resampled(
    mixture: Mixture, factors: torch.Tensor, count: int, generator: torch.Generator
) -> torch.Tensor:
    """Features (n, d) drawn from a mixture; `factors` are those of its covariances."""
    shares = mixture.shares.double().cpu()
    components = torch.multinomial(shares, count, replacement=True, generator=generator)
    drawn = mixture.means[components.to(mixture.means.device)]
    for k in range(len(factors)):
        rows = (components == k).to(drawn.device)
        drawn[rows] = draw(drawn[rows], factors[k], generator)
    return drawn


def _covariance(points: torch.Tensor) -> torch.Tensor:
    centred = points - points.mean(0)
    return centred.T @ centred / max(1, len(points) - 1)
