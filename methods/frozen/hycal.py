"""HyCal: class means compared by cosine or by Mahalanobis distance, as their shots allow.

Paper: HyCal, CVPR 2026 (arXiv 2604.15678), for few-shot class-incremental learning across
disciplines; what follows is its released code. Nothing is trained. A training feature is mixed with
the text embedding of its class, and a test feature with that of each class it may have:

    e_i = n(z_i + w_y),   mu_c = n(mean of e_i),   e_c(x) = n(z + w_c)
    a_c = Phi( standardised e_c . mu_c )
    m_c = Phi( standardised -(e_c - mu_c)' P_c (e_c - mu_c) )
    g_c = sigmoid( (N_c - n_min) / scale )  if N_c >= n_min, else 0
    prediction = argmax_c (1 - g_c) a_c + g_c m_c

where n(.) scales to unit length, Phi is the normal distribution function, and scores are
standardised over the classes of an image. P_c = (Sigma + lam I)^-1. In a stream of domains a class
has several means:

    domain-max   one for every domain; scores are standardised over all of them, and the best
                 mean of a class decides. The base domain's means are compared by Mahalanobis
                 distance, those of few shots by cosine
    running      one, from the moments of all images so far
    overwrite    that of the newest domain: what the released code does when a class comes again

Different from the original:
- One covariance per domain, shrunk towards the base domain's (`resampling.py`), around the plain
  class means: the original has one per class, which K images do not give.
- The original adds the distance to a background Gaussian. It is the same for all classes of an
  image, so it vanishes when scores are standardised, once every class is learned: left out.
- With fewer than five classes standardising over classes leaves only their order (two values
  always become +-0.71). There the mean and deviation of the base domain's own scores are taken.
- With K = 1 the mean of a class is the feature of one image: a memory of samples, and boards mark
  it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..moments import Moments, class_means, merged, moments, within_class
from ..resampling import shrunk_within
from ..text_classifier import class_embeddings, require_text, templates_option

_FEW_CLASSES = 5  # below it, scores are standardised by constants of the base domain


@dataclass(frozen=True)
class Config:
    """Options of hycal."""

    mode: Literal["domain-max", "running", "overwrite"] = option(
        "domain-max", "means of every domain, of all images together, or of the newest domain"
    )
    fusion: Literal["sum", "none"] = option(
        "sum", "mix class names into the features, or take them as they are"
    )
    gate: Literal["hard", "soft"] = option(
        "hard", "below least_shots only the cosine counts, or it counts the more the fewer shots"
    )
    least_shots: int = option(10, "shots from which the distance counts", minimum=0)
    gate_scale: float = option(5.0, "shots over which the weight changes", minimum=0.01)
    ridge: float = option(1e-4, "what is added to the diagonal of a covariance", minimum=0)
    templates: tuple[str, ...] = templates_option()


class HyCal(Method):
    """Cosines and Mahalanobis distances on one scale."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        classes, size = len(context.class_names), context.backbone.embed_dim
        self.text = torch.zeros(classes, size, dtype=torch.float64, device=context.device)
        if context.config.fusion == "sum":
            require_text(context, "fusion = sum", "fusion=none")
            self.text = class_embeddings(context, context.config.templates).double()
        # Cells: one row for every domain that has means of its own.
        self.counts = self.text.new_zeros(0, classes)
        self.means = self.text.new_zeros(0, classes, size)
        self.covariances = self.text.new_zeros(0, size, size)
        self.base = self.text.new_zeros(size, size)  # within-class covariance of the base domain
        self.products = self.text.new_zeros(size, size)  # mode `running` only
        self.usual = self.text.new_zeros(2, 2)  # mean and deviation of both scores, few classes

    def learn(self, domain: TrainDomain) -> None:
        """Add the domain's means and covariance, or replace those that were there."""
        labels, mode = domain.labels, self.context.config.mode
        fused = F.normalize(domain.features().double() + self.text[labels], dim=1)
        own = moments(fused, labels, len(self.text))
        if domain.index == 0:
            self.base = within_class(own)
        if mode == "running":
            if domain.index:
                kept = self.counts[0], self.counts[0, :, None] * self.means[0], self.products
                own = merged(Moments(*kept), own)
            self.products = own.products
        covariance = shrunk_within(own, self.base if mode != "running" and domain.index else None)
        cells = own.counts[None], class_means(own)[None], covariance[None]
        if mode == "domain-max":
            before = self.counts, self.means, self.covariances
            cells = tuple(torch.cat(pair) for pair in zip(before, cells, strict=True))  # type: ignore[assignment]
        self.counts, self.means, self.covariances = cells
        if domain.index == 0 and len(self.text) < _FEW_CLASSES:
            scores = torch.stack(self.scores(domain.features()))
            self.usual = torch.stack([scores.mean((1, 2)), scores.std((1, 2))])

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the best cell."""
        cosines, nearness = self.scores(batch.features)
        usual = self.usual if len(self.text) < _FEW_CLASSES else None
        parts = [
            calibrated(score, self.counts.flatten() > 0, None if usual is None else usual[:, i])
            for i, score in enumerate((cosines, nearness))
        ]
        weight = self.gate().flatten()
        score = (1 - weight) * parts[0] + weight * parts[1]
        score = score.masked_fill(self.counts.flatten() == 0, -torch.inf)
        return score.unflatten(1, self.counts.shape).amax(1).argmax(1)

    def gate(self) -> torch.Tensor:
        """How much the distance counts in every cell, (cells, C)."""
        config = self.context.config
        weight = ((self.counts - config.least_shots) / config.gate_scale).sigmoid()
        if config.gate == "soft":
            return weight
        return torch.where(self.counts >= config.least_shots, weight, 0.0)

    def scores(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and negative squared distances to all cells, twice (n, cells x C)."""
        z, means = z.double(), F.normalize(self.means, dim=-1)
        lengths = (
            z.square().sum(1)[:, None] + 2 * z @ self.text.T + self.text.square().sum(1)
        ).sqrt()
        cosines, nearness = [], []
        for mean, covariance in zip(means, self.covariances, strict=True):
            ridge = self.context.config.ridge * torch.eye(len(covariance)).to(covariance)
            precision = torch.linalg.inv(covariance + ridge)
            cosines.append((z @ mean.T + (self.text * mean).sum(1)) / lengths)
            nearness.append(-distances(z, self.text, mean, precision, lengths))
        return torch.cat(cosines, 1), torch.cat(nearness, 1)

    def state_dict(self) -> State:
        """Counts, means and covariances of the cells, and what the base domain lends."""
        return {
            "counts": self.counts,
            "means": self.means,
            "covariances": self.covariances,
            "base": self.base,
            "products": self.products,
            "usual": self.usual,
        }

    def load_state_dict(self, state: State) -> None:
        """Load the statistics."""
        for name, value in state.items():
            setattr(self, name, value)


def distances(
    z: torch.Tensor,
    text: torch.Tensor,
    means: torch.Tensor,
    precision: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """(e_c - mu_c)' P (e_c - mu_c) for e_c = (z + w_c) / lengths, (n, C), without forming e_c."""
    z_p, text_p = z @ precision, text @ precision
    square = (z_p * z).sum(1)[:, None] + 2 * z_p @ text.T + (text_p * text).sum(1)
    cross = z_p @ means.T + (text_p * means).sum(1)
    return square / lengths**2 - 2 * cross / lengths + ((means @ precision) * means).sum(1)


def calibrated(
    scores: torch.Tensor, present: torch.Tensor, usual: torch.Tensor | None = None
) -> torch.Tensor:
    """Scores (n, cells) of all images as numbers from 0 to 1.

    They are standardised over the cells that are `present`, or by the `usual` mean and deviation.
    """
    if usual is None:
        own = scores[:, present]
        mean, deviation = own.mean(1, keepdim=True), own.std(1, keepdim=True)
    else:
        mean, deviation = usual
    return torch.special.ndtr((scores - mean) / deviation.clamp(min=1e-12))
