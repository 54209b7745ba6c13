"""RAPF: a linear adapter on image features, kept near what it was by replay, text and fusion.

Paper: Huang et al., Class-Incremental Learning with CLIP: Adaptive Representation Adjustment and
Parameter Fusion, ECCV 2024. With a matrix A (d, d), f = n(A z), text embeddings w_c and scale s

    loss = cross-entropy(s f . w_c, y)                on images, and on features of earlier domains
         + mean of relu(f . w_j - f . w_i + 0.1)      on features of class i of an earlier domain,
                                                      for classes j with |w_i - w_j| < threshold

Features of earlier domains are drawn from Gaussians (`resampling.py`). After a domain the new
matrix A' is joined with the old one in the basis of A = U S V':

    P = U'A',  R = S V',  M = min(|P - R| / max|P - R| + bias, 1)
    A <- U ( M P + (1 - M) R )                        element by element

Different from the original:
- Its tasks have new classes. Here all classes are old and new at once: the hinge takes all pairs,
  in both directions, at most five nearest classes j for every i.
- A starts as the identity, which is zero-shot CLIP (`init=random` is the original), and sees unit
  features of plain views. Their common length makes no difference to f.
- One covariance per domain, shrunk towards the base domain's, instead of one per class. With K = 1
  the mean of a class is the feature of one image: a memory of samples, and boards mark it.
- A few-shot domain takes a number of steps, with as many replayed features as images and at most as
  many for the hinge; the bias is 0.2, not 0.6 to 0.8, which would keep nine tenths of a step made
  from a handful of images.
- The base domain has nothing to be joined with. Where A = A', M would be 0 / 0: A stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..embedded import on_embedded_worlds
from ..moments import class_means, moments, within_class
from ..resampling import draw, factors, shrunk_within
from ..text_classifier import class_embeddings

_MARGIN = 0.1
_DROPS = (4 / 15, 10 / 15)  # of the steps: where the learning rate falls to a tenth


@dataclass(frozen=True)
class Config:
    """Options of rapf."""

    init: Literal["identity", "random"] = option("identity", "what the adapter starts from")
    lr: float = option(1e-3, "learning rate of Adam at the start", minimum=0)
    batch_size: int = option(
        32, "features of each kind per step: images, replayed ones, and for the hinge", minimum=1
    )
    base_epochs: int = option(15, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    hinge: float = option(1.0, "weight of the hinge between similar classes", minimum=0)
    threshold: float = option(
        0.65, "distance of two class names below which they are similar", minimum=0
    )
    neighbours: int = option(5, "at most so many similar classes of a class", minimum=1)
    mix_bias: float = option(0.2, "least share of the new adapter", minimum=0, maximum=1)
    templates: tuple[str, ...] = option(
        ("a good photo of a {}.",), "sentences with {} for the class name; a JSON list"
    )


class RAPF(Method):
    """One adapter for all domains."""

    Config = Config
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {"base_epochs": 15},
        "core50": {"base_epochs": 15},
        "domainnet": {"base_epochs": 5},
        **on_embedded_worlds("base_epochs", "steps"),
    }
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {
        "neighbours": "a small slice has too few classes with similar names"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        size = context.backbone.embed_dim
        self.text = class_embeddings(context, context.config.templates)
        self.adapter = torch.eye(size, device=context.device)
        if context.config.init == "random":
            noise = torch.rand(size, size, generator=context.generator("adapter"))
            self.adapter = ((2 * noise - 1) / size**0.5).to(context.device)
        self.counts = self.text.new_zeros(0, len(self.text))
        self.means = self.text.new_zeros(0, *self.text.shape)
        self.covariances = self.text.new_zeros(0, size, size)
        self.base = self.text.new_zeros(size, size)
        self.pairs = similar_pairs(self.text, context.config.threshold, context.config.neighbours)

    def learn(self, domain: TrainDomain) -> None:
        """Train the adapter, join it with the one before, remember the domain's Gaussians."""
        before = self.adapter
        self.adapter = self._trained(domain)
        if domain.index:
            self.adapter = fused(before, self.adapter, self.context.config.mix_bias)
        own = moments(domain.features(), domain.labels, len(self.text))
        if domain.index == 0:
            self.base = within_class(own).float()
        covariance = shrunk_within(own, self.base.double() if domain.index else None)
        self.counts = torch.cat([self.counts, own.counts[None].float()])
        self.means = torch.cat([self.means, class_means(own)[None].float()])
        self.covariances = torch.cat([self.covariances, covariance[None].float()])

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose text is most similar to the adapted feature."""
        return (self.embed(batch) @ self.text.T).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """Adapted unit features."""
        return adapted(batch.features, self.adapter)

    def state_dict(self) -> State:
        """The adapter, and the Gaussians of all domains."""
        return {
            "adapter": self.adapter,
            "counts": self.counts,
            "means": self.means,
            "covariances": self.covariances,
            "base": self.base,
        }

    def load_state_dict(self, state: State) -> None:
        """Load them."""
        for name, value in state.items():
            setattr(self, name, value.clone())

    def trained_parameters(self) -> int:
        """The adapter."""
        return self.adapter.numel()

    def _trained(self, domain: TrainDomain) -> torch.Tensor:
        config, z, labels = self.context.config, domain.features(), domain.labels
        size = min(config.batch_size, len(z))
        steps = config.steps if domain.index else config.base_epochs * -(-len(z) // size)
        generator = self.context.generator("training", domain.index)
        replay = _Replay(self.means, self.counts, factors(self.covariances), generator)
        adapter = self.adapter.clone().requires_grad_()
        optimizer = torch.optim.Adam([adapter], lr=config.lr, fused=self.context.fused)
        order = torch.randperm(0)
        with domain.training(steps) as advance:
            for step in range(steps):
                optimizer.param_groups[0]["lr"] = config.lr * 0.1 ** sum(
                    step >= drop * steps for drop in _DROPS
                )
                if not len(order):
                    order = torch.randperm(len(z), generator=generator).to(z.device)
                rows, order = order[:size], order[size:]
                features, wanted = z[rows], labels[rows]
                if domain.index:
                    old, old_labels = replay.any_class(config.batch_size)
                    features, wanted = torch.cat([features, old]), torch.cat([wanted, old_labels])
                logits = adapted(features, adapter) @ self.text.T
                loss = F.cross_entropy(self.context.backbone.logit_scale * logits, wanted)
                if domain.index and len(self.pairs) and config.hinge:
                    few = torch.randint(len(self.pairs), (config.batch_size,), generator=generator)
                    own, other = self.pairs[few.to(z.device)].unbind(1)
                    f = adapted(replay.of_classes(own), adapter)
                    loss = loss + config.hinge * hinge(f, self.text[own], self.text[other])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                advance()
        return adapter.detach()


class _Replay:
    """Features drawn from the Gaussians of earlier domains."""

    def __init__(
        self,
        means: torch.Tensor,
        counts: torch.Tensor,
        factors: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        self.means, self.factors, self.generator = means, factors, generator
        self.present = (counts > 0).double().cpu()  # (T, C)

    def any_class(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Features of cells (t, c) at random, and their labels."""
        cells = torch.multinomial(self.present.flatten(), count, True, generator=self.generator)
        domains, labels = cells // self.present.shape[1], cells % self.present.shape[1]
        return self._draw(domains, labels), labels.to(self.means.device)

    def of_classes(self, labels: torch.Tensor) -> torch.Tensor:
        """A feature of each of these classes, from a domain at random."""
        shares = self.present.T[labels.cpu()]
        domains = torch.multinomial(shares, 1, generator=self.generator)[:, 0]
        return self._draw(domains, labels.cpu())

    def _draw(self, domains: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        drawn = self.means[domains.to(self.means.device), labels.to(self.means.device)].clone()
        for t in domains.unique().tolist():
            rows = (domains == t).to(drawn.device)
            drawn[rows] = draw(drawn[rows], self.factors[t], self.generator)
        return drawn


def adapted(z: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
    """f = n(A z) for rows z."""
    return F.normalize(z @ adapter.T, dim=1)


def similar_pairs(text: torch.Tensor, threshold: float, most: int) -> torch.Tensor:
    """Ordered pairs (i, j) of classes with similar names, (p, 2); at most so many j for an i."""
    distances = torch.cdist(text.double(), text.double()).fill_diagonal_(torch.inf)
    nearest = distances.topk(min(most, len(text)), largest=False)
    own, place = (nearest.values < threshold).nonzero(as_tuple=True)
    return torch.stack([own, nearest.indices[own, place]], 1)


def hinge(f: torch.Tensor, own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Mean of relu(f . w_j - f . w_i + 0.1)."""
    return ((f * other).sum(1) - (f * own).sum(1) + _MARGIN).relu().mean()


def fused(old: torch.Tensor, new: torch.Tensor, bias: float) -> torch.Tensor:
    """The old and the new adapter joined, `bias` being the least share of the new one."""
    identity = torch.eye(len(old)).to(old)
    # All directions of the identity are alike, so its singular vectors say nothing.
    basis = identity if torch.equal(old, identity) else torch.linalg.svd(old.double())[0].to(old)
    return joined(basis, old, new, bias)


def joined(basis: torch.Tensor, old: torch.Tensor, new: torch.Tensor, bias: float) -> torch.Tensor:
    """U (M P + (1 - M) R), where R = U'A is also S V' of the decomposition."""
    kept, moved = basis.T @ old, basis.T @ new
    change = (moved - kept).abs()
    if torch.equal(old, new) or not change.max():
        return old
    mask = (change / change.max() + bias).clamp(max=1)
    return basis @ (mask * moved + (1 - mask) * kept)
