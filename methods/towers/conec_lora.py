"""CONEC-LoRA: low-rank updates for every domain, some of them tied to those before.

Paper: Paeedeh et al., Continual Knowledge Consolidation LoRA for Domain Incremental Learning, 2025
(arXiv 2510.16077). In every block the queries and values of the normed tokens x become

    q = W_q x + U_q D_q x,      v = W_v x + U_v D_v x

Domain t starts from a copy of the updates of domain t - 1, the first from orthonormal rows D and
U = 0. The lower half of the blocks is shared in spirit: D stays, and U is tied to what it was by
distillation. The upper half is the domain's own, D and U. Heads:

    stochastic   the original: logits 16 cos(f, mu + softplus(sigma - 4) eps), eps ~ N(0, I) drawn
                 for every step; after training mu becomes the class means of the domain's features
    text         CLIP's class names

    loss = cross-entropy + 5 (soft cross-entropy of the head on the lower half of the blocks alone,
           under the new updates, against the same under the previous ones, temperature 2)

The gradient of this distillation on U is multiplied row by row by the lengths of the previous U's
rows, scaled to a mean of 1. A test image gets the updates and the head of its domain, which is
found by classifiers of domains at several depths of the plain tower, on the mean of its patch
tokens: the first that is sure to 0.9 decides, else the most sure one.

Different from the original:
- Its last incomplete batch is dropped, so that fewer than 64 images are no step at all; not here.
- Tests use mu: the original draws its classifier in tests, too. sigma is therefore not kept.
- mu starts at the class means: from noise it would not be trained by the steps of a few shots.
- Cross-entropy and distillation are one step of Adam; there they are two steps of SGD, the second
  with gradients of weights that the first has changed.
- The classifiers of domains are those of SOYO (`domain_selector.py`), after each quarter of the
  blocks. There they stand after each block behind a network of 1.6 million weights each, with a
  loss that keeps domains in balls: too much for two images, and not offered.
- The text head's logits are scaled by 10 / s in the distillation, as in `lwf.py`.
- With K = 1 a class mean is the feature of one image: a memory of samples, and boards mark it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, RouterMethod, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, fold, image_tokens, run_block, tower_blocks

from ..domain_selector import DomainSelector
from ..embedded import LIMITS, on_embedded_worlds
from .adapted_training import AdaptedConfig, AdaptedMethod

_SCALE = 16.0  # of the cosines
_TEMPERATURE = 2.0
_SOFT_SCALE = 10.0  # of the text head's cosines in the distillation
_DEPTHS = 4  # at which domains are recognised
_PARTS = ("down.shared", "down.own", "up.shared", "up.own")
_SELECTOR = "selector."


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of conec-lora."""

    head: Literal["stochastic", "text"] = option(  # type: ignore[assignment]
        "stochastic", "a trained classifier with noise, or the one made of class names"
    )
    lr: float = option(5e-4, "learning rate of Adam", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "cosine", "course of the learning rate over the steps of a domain"
    )
    rank: int = option(8, "rank of the updates", minimum=1)
    distillation: float = option(5.0, "weight of the distillation of the lower blocks", minimum=0)
    threshold: float = option(
        0.9, "confidence at which a depth decides the domain alone", minimum=0
    )


class ConecLoRA(RouterMethod, AdaptedMethod):
    """Updates and a head for every domain, and a router."""

    Config: ClassVar[type] = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 5},
        "domainnet": {"base_epochs": 2, "batch_size": 128},
        **on_embedded_worlds(*LIMITS),
    }
    inputs = frozenset({"images"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        blocks, width = self.shape.blocks, self.shape.width
        self.shared = blocks // 2
        ends = {round(blocks * (k + 1) / _DEPTHS) - 1 for k in range(_DEPTHS)}
        self.depths = sorted(end for end in ends if end >= 0)
        self.selectors = [DomainSelector(width, context.device) for _ in self.depths]
        self._folded: dict[int, list[BlockAdapter]] = {}

    def learn(self, domain: TrainDomain) -> None:
        """Train the domain's updates, keep its class means, learn to recognise it."""
        t, config = domain.index, self.context.config
        own = f"domains.{t}."
        self.add(self._start(t), own)
        names = [own + part for part in _PARTS if part != "down.shared"]
        if config.head == "stochastic":
            means = self._class_means(domain, t)
            self.add({"proxy.mu": means, "proxy.sigma": torch.zeros_like(means)})
            names += ["proxy.mu", "proxy.sigma"]
        noise = self.context.generator("noise", t)

        def loss(batch: TrainBatch) -> torch.Tensor:
            with self.context.backbone.autocast():
                features = self.encode(batch.images, self.adapters(t))
            found = F.cross_entropy(self._training_logits(features.float(), noise), batch.labels)
            if t and config.distillation:
                found = found + config.distillation * self.distilled(batch.images, t)
            return found

        self.train(domain, names, loss)
        for name in ("proxy.mu", "proxy.sigma"):
            self.weights.pop(name, None)
        self._folded = {}
        if config.head == "stochastic":
            self.add({"head.mu": self._class_means(domain, t)}, own)
        for i, (selector, z) in enumerate(
            zip(self.selectors, self._of_domain(domain, self.depth_features), strict=True)
        ):
            selector.add_domain(z, self.context.generator("selector", t, i))
        self._trained += sum(selector.trained_parameters() for selector in self.selectors)

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """What the first sure depth says, or the surest."""
        flat = self.context.backbone.run_with(self._depths_side_by_side, batch.images)
        features = flat.split(self.shape.width, 1)
        pairs = zip(self.selectors, features, strict=True)
        logits = torch.stack([selector.logits(z) for selector, z in pairs])
        return surest(logits.softmax(-1), self.context.config.threshold)

    @torch.no_grad()
    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """Classes, domain by domain."""
        classes = torch.zeros_like(domains)
        for t in domains.unique().tolist():
            rows = domains == t
            features = self._features(batch.images[rows], t)
            classes[rows] = self._logits_of(features, t).argmax(1)
        return classes

    def features(self, batch: Batch) -> torch.Tensor:
        """Features under the updates of the predicted domains."""
        domains = self.predict_domain(batch)
        found = torch.zeros(len(domains), self.shape.width, device=domains.device)
        for t in domains.unique().tolist():
            found[domains == t] = self._features(batch.images[domains == t], t)
        return found

    def distilled(self, images: torch.Tensor, t: int) -> torch.Tensor:
        """Soft cross-entropy of the lower blocks under the new updates against the previous ones.

        The same head reads both, without noise.
        """
        before, now = f"domains.{t - 1}.up.shared", f"domains.{t}.up.shared"
        scaled = scaled_gradient(self.weights[now], row_scales(self.weights[before]))
        with self.context.backbone.autocast():
            new = self.encode(images, self.adapters(t, scaled), depth=self.shared)
            with torch.no_grad():
                old = self.encode(images, self.adapters(t - 1), depth=self.shared)
        soften, head = 1 / _TEMPERATURE, self._training_logits
        if self.text is not None:
            soften *= _SOFT_SCALE / self.text.scale
        taught = (soften * head(old.float(), None)).softmax(1).detach()
        return -(taught * (soften * head(new.float(), None)).log_softmax(1)).sum(1).mean()

    def adapters(self, t: int, up_shared: torch.Tensor | None = None) -> list[BlockAdapter]:
        """The updates of domain t, block by block; some may be given instead of its own."""
        down_shared, down_own, up_s, up_own = (self.weights[f"domains.{t}.{p}"] for p in _PARTS)
        up_shared = up_s if up_shared is None else up_shared
        down, up = torch.cat([down_shared, down_own]), torch.cat([up_shared, up_own])
        return [
            BlockAdapter(lora={"q": (d[0], u[0]), "v": (d[1], u[1])})
            for d, u in zip(down, up, strict=True)
        ]

    def encode(
        self, images: torch.Tensor, adapters: Sequence[BlockAdapter], depth: int | None = None
    ) -> torch.Tensor:
        """The class token after all blocks or some, (n, width)."""
        tokens = image_tokens(self.visual, images, adapters, depth=depth).tokens
        return self.visual.ln_post(tokens[:, 0])

    def depth_features(self, images: torch.Tensor) -> list[torch.Tensor]:
        """The mean of the patch tokens of the plain tower at every depth, (n, width) each."""
        x = image_tokens(self.visual, images, depth=0).tokens
        found = []
        for i, block in enumerate(tower_blocks(self.visual)[: self.depths[-1] + 1]):
            x = run_block(block, x, BlockAdapter())
            if i in self.depths:
                found.append(x[:, 1:].mean(1))
        return found

    def state_dict(self) -> State:
        """Updates and heads of every domain, and the classifiers of domains."""
        selectors = {
            f"{_SELECTOR}{i}.{name}": value
            for i, selector in enumerate(self.selectors)
            if selector.mixtures
            for name, value in selector.state_dict().items()
        }
        return super().state_dict() | selectors

    def load_state_dict(self, state: State) -> None:
        """Load them."""
        own = {k: v for k, v in state.items() if not k.startswith(_SELECTOR)}
        super().load_state_dict(own)
        for i, selector in enumerate(self.selectors):
            prefix = f"{_SELECTOR}{i}."
            kept = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            if kept:
                selector.load_state_dict(kept)
        self._folded = {}

    def _start(self, t: int) -> State:
        """The updates that domain t begins with: copies of the previous domain's."""
        if t:
            return {part: self.weights[f"domains.{t - 1}.{part}"].clone() for part in _PARTS}
        config, width = self.context.config, self.shape.width
        rank, generator = min(config.rank, width), self.context.generator("updates")
        noise = torch.randn(self.shape.blocks, 2, width, rank, generator=generator)
        down = torch.linalg.qr(noise).Q.mT.contiguous()  # orthonormal rows
        up = torch.zeros(self.shape.blocks, 2, width, rank)
        tensors = (down[: self.shared], down[self.shared :], up[: self.shared], up[self.shared :])
        return {p: tensor.clone() for p, tensor in zip(_PARTS, tensors, strict=True)}

    def _training_logits(
        self, features: torch.Tensor, noise: torch.Generator | None
    ) -> torch.Tensor:
        """The head in training; without `noise`, its mean."""
        if self.text is not None:
            return self.text.logits(features)
        mu, sigma = self.weights["proxy.mu"], self.weights["proxy.sigma"]
        return cosine_logits(features, mu if noise is None else noisy(mu, sigma, noise))

    def _logits_of(self, features: torch.Tensor, t: int) -> torch.Tensor:
        if self.text is not None:
            return self.text.logits(features)
        return cosine_logits(features, self.weights[f"domains.{t}.head.mu"])

    def _features(self, images: torch.Tensor, t: int) -> torch.Tensor:
        """Features under the updates of domain t, multiplied into the weights."""
        if t not in self._folded:
            self._folded[t] = fold(self.visual, self.adapters(t))
        adapters = self._folded[t]
        return self.context.backbone.run_with(lambda x: self.encode(x, adapters), images)

    def _class_means(self, domain: TrainDomain, t: int) -> torch.Tensor:
        """Class means of plain views under the updates of domain t as they are now, (C, width)."""
        (features,) = self._of_domain(domain, lambda images: [self._features(images, t)])
        self._folded = {}  # the updates are about to be trained
        members = F.one_hot(domain.labels, self.classes).to(features)
        return members.T @ features / members.sum(0).clamp(min=1)[:, None]

    @torch.no_grad()
    def _of_domain(self, domain: TrainDomain, encode: Any) -> list[torch.Tensor]:
        """What `encode` returns for the plain views of a domain, in its order."""
        size = self.context.config.batch_size
        batches = domain.batches(size, augment=False, shuffle=False)
        parts = [encode(batch.images) for batch in batches]
        return [torch.cat(each).float() for each in zip(*parts, strict=True)]

    def _depths_side_by_side(self, images: torch.Tensor) -> torch.Tensor:
        return torch.cat(self.depth_features(images), 1)


def noisy(mu: torch.Tensor, sigma: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A classifier drawn around mu."""
    noise = torch.randn(mu.shape, generator=generator).to(mu)
    return mu + F.softplus(sigma - 4) * noise


def cosine_logits(features: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """16 times the cosines, (n, C)."""
    return _SCALE * F.normalize(features, dim=1) @ F.normalize(rows, dim=1).T


def row_scales(previous: torch.Tensor) -> torch.Tensor:
    """Lengths of the rows of U (..., width, r), scaled to a mean of 1 in every matrix."""
    lengths = previous.norm(dim=-1, keepdim=True)
    return lengths / lengths.mean(-2, keepdim=True).clamp(min=1e-12)


def scaled_gradient(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The same numbers; gradients that come back through them are multiplied by `scales`."""
    return weight.detach() + scales * (weight - weight.detach())


def surest(probabilities: torch.Tensor, threshold: float) -> torch.Tensor:
    """The domain (n,) from (depths, n, T): of the first depth as sure as that, or the surest."""
    confidence, domains = probabilities.max(-1)
    sure = confidence >= threshold
    first = sure.int().argmax(0)  # the first of the largest
    depth = torch.where(sure.any(0), first, confidence.argmax(0))
    return domains.gather(0, depth[None])[0]
