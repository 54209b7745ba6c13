"""Class prototypes from images, and their fusion with the base domain and with text.

CVLC, the prototype classifier. With beta_v = 1 - lambda_v and beta_c = 1 - lambda_c of the domain

    P_v = n( beta_v Q_t + (1 - beta_v) P_0 ),      P_v = n( Q_0 ) in the base domain
    P   = n( beta_c P_v + (1 - beta_c) mu_text )
    logits = min(exp(rho), 100) n(z) . P

While a domain is learned, Q_t is a trained matrix W_t; P_0 are the stored prototypes of the base
domain, as constants. At the end of the domain W_t is thrown away, and for inference Q_t is

    P_t = n( beta_c mean_t + (1 - beta_c) mu_text )

with the class means of calibrated image embeddings. The means are taken as they are, longer than a
unit vector because of PowerNorm. So in the authors' code text enters twice, when P_t is stored and
again at inference; without `fuse_text_at_store` it enters once, as in the paper's equation, and P_t
and thus P_0 are purely visual.

The means of a K-shot domain are over max(1, 100 // K) passes, each with an augmented and the plain
view of every image. A plain view is the same in every pass: it is encoded once and weighted.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .power_norm import unit

INITIAL_LOG_SCALE = math.log(1 / 0.07)
MAX_SCALE = 100.0


def initial_weights(
    classes: int, size: int, generator: torch.Generator | None = None
) -> torch.Tensor:
    """The matrix W of the base domain before training."""
    return 0.01 * torch.randn(classes, size, generator=generator)


def fuse(
    own: torch.Tensor,
    text: torch.Tensor | None,
    current_share: torch.Tensor | float,
    visual_share: torch.Tensor | float,
    base: torch.Tensor | None = None,
) -> torch.Tensor:
    """The classifier's prototypes P, in training (own = W_t) and at inference (own = P_t).

    `base` is P_0, and None in the base domain.
    """
    if base is not None:
        own = current_share * own + (1 - current_share) * base.detach()
    return with_text(unit(own), text, visual_share)


def with_text(
    visual: torch.Tensor, text: torch.Tensor | None, visual_share: torch.Tensor | float
) -> torch.Tensor:
    """Unit vectors between prototypes from images and those from text, if there are any."""
    if text is None:
        return unit(visual)
    return unit(visual_share * visual + (1 - visual_share) * text)


def logits(
    z: torch.Tensor, prototypes: torch.Tensor, log_scale: torch.Tensor | float
) -> torch.Tensor:
    """Scaled cosines (n, C); `prototypes` are unit vectors."""
    scale = torch.as_tensor(log_scale, dtype=z.dtype, device=z.device).exp().clamp(max=MAX_SCALE)
    return scale * unit(z) @ prototypes.T


def stored_prototypes(
    means: torch.Tensor,
    text: torch.Tensor | None,
    visual_share: torch.Tensor | float,
    fuse_text_at_store: bool = True,
) -> torch.Tensor:
    """What is kept of a domain: unit vectors P_t from its class means."""
    stored = with_text(means, text, visual_share) if fuse_text_at_store else unit(means)
    return stored.detach()


def passes(shots: int, least: int = 100) -> int:
    """How often the augmentation sees the images of a K-shot domain."""
    return max(1, least // shots)


def class_means(
    z: torch.Tensor, labels: torch.Tensor, classes: int, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Weighted mean of every class, (C, d); each class needs an image."""
    members = F.one_hot(labels, classes).to(z.dtype)
    if weights is not None:
        members = members * weights.to(z)[:, None]
    totals = members.sum(0)
    if not bool((totals > 0).all()):
        raise ValueError(f"no image of class {int(totals.argmin())}")
    return (members.T @ z) / totals[:, None]
