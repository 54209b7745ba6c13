"""ASP: prompts that are the same for all images, and prompts that are made for each.

Paper: Liu et al., Few-Shot Class Incremental Learning with Attention-Aware Self-Adaptive Prompt,
ECCV 2024. Every block i has its own prompt tokens, which leave with it (deep prompts): invariant
ones I_i, trained and the same for all images, and specific ones S_i(x), which a variational encoder
makes. With the frozen feature q of the image, two linear maps after each other for the mean and
two for the spread, and noise e,

    h = [first token of I_i, q],     mu = M2 M1 h,     std = softplus(D2 D1 h - 5),
    S_i(x) = a average_i + (1 - a) (mu + std e)           with e = 0 in testing,

where average_i is the mean of mu over the images of the base domain. The base domain minimises

    cross-entropy + anchor_weight sum 1 - cos(f, f of the class's anchor) + kl_weight KL,
    KL = sum over tokens of (mu^2 + std^2 - 2 ln std - 1) / 2 per image and block,

the middle term as a mean over the images of a class, then over classes. The anchor of a class is
the image that is nearest to its class mean. A later domain takes no gradient step: its mean prompt
enters the average with 1 - `average_keep`, and its class means become prototypes
(`prototype_prompts.py`).

Different from the original:
- In a stream of domains, overwriting the prototypes forgets all earlier domains at once. By default
  every domain keeps its own (`prototypes=overwrite` is the original).
- sigma starts at 16. With sigma = 1 the loss cannot fall below 2.03 for 50 classes.
- q is the frozen embedding of the plain view, which the harness keeps, instead of the class token
  of a second tower: 512 numbers instead of 768 in ViT-B/16, and no second forward pass.
- Anchors are chosen before every pass over the base domain, as in the original, and their features
  stay as they were then; the original encodes them again in every step.
- There is one anchor per class of a batch; in the released code, one per image.
- The noise has weight 1, and the linear maps start as layers of torch do: neither is described.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter

from ..domain_prototypes import class_sums, similarity
from ..embedded import on_embedded_worlds
from .prototype_prompts import PrototypePromptConfig, PrototypePrompts

_SHIFT = 5.0  # of the spread before its softplus: noise starts small


@dataclass(frozen=True)
class Config(PrototypePromptConfig):
    """Options of asp."""

    batch_size: int = option(48, "images per step", minimum=1)
    hidden: int = option(256, "width between the two linear maps of the encoder", minimum=1)
    noise: float = option(1.0, "factor on the noise of specific prompts in training", minimum=0)
    average_share: float = option(
        0.8, "share a of the average in a specific prompt", minimum=0, maximum=1
    )
    average_keep: float = option(
        0.99, "what a later domain leaves of the average prompt", minimum=0, maximum=1
    )
    anchor_weight: float = option(
        0.1, "weight of the pull of features to their class's anchor", minimum=0
    )
    kl_weight: float = option(
        0.001, "weight of the divergence of specific prompts from plain noise", minimum=0
    )


class ASP(PrototypePrompts):
    """Invariant and specific deep prompts, trained in the base domain only."""

    Config: ClassVar[type] = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 5},
        "domainnet": {"base_epochs": 2, "batch_size": 128},
        **on_embedded_worlds("base_epochs", "batch_size"),
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, (blocks, width) = context.config, (self.shape.blocks, self.shape.width)
        tokens = torch.zeros(blocks, config.prompt_length, width)
        self.add({"invariant": tokens, "average": tokens.clone()})
        seen, made = width + context.backbone.embed_dim, config.prompt_length * width
        for part in ("mean", "spread"):
            start = context.generator("encoder", part)
            self.add(two_layers(seen, config.hidden, made, start), f"{part}.")

    def learn(self, domain: TrainDomain) -> None:
        """Train on the base domain; then update the average prompt and the prototypes."""
        self._trained = 0
        if domain.index == 0:
            self.train_base(domain)
            self.weights["average"] = self.mean_prompt(domain)
        else:
            new, kept = self.mean_prompt(domain), self.context.config.average_keep
            self.weights["average"] = kept * self.weights["average"] + (1 - kept) * new
        self.remember(self.plain_features(domain), domain.labels)

    def train_base(self, domain: TrainDomain) -> None:
        """Train prompts and encoder, under a cosine head that is dropped afterwards."""
        config, noise = self.context.config, self.context.generator("noise")
        queries = domain.features()
        self.weights["average"] = self.mean_prompt(domain)
        self.weights["head"] = self.class_means(domain)

        def loss(batch: TrainBatch) -> torch.Tensor:
            mu, std = self.specific(queries[batch.positions])
            drawn = torch.randn(mu.shape, generator=noise).to(mu)
            with self.context.backbone.autocast():
                features = self.encode(batch.images, mu + config.noise * std * drawn).float()
            cosines = similarity(features, self.weights["head"][None]).float()
            loss = F.cross_entropy(self.weights["scale"] * cosines, batch.labels)
            pull = to_anchors(features, self.weights["anchors"], batch.labels)
            return loss + config.anchor_weight * pull + config.kl_weight * divergence(mu, std)

        parts = ("mean.", "spread.")
        names = [name for name in self.weights if name.startswith(parts)]
        self.train(domain, [*names, "invariant", "head", "scale"], loss)
        for name in ("head", "anchors"):
            self.weights.pop(name, None)

    def batches(self, domain: TrainDomain) -> Iterator[TrainBatch]:
        """Passes over the base domain; average prompt and anchors are new in each."""
        config = self.context.config
        for _ in range(config.base_epochs):
            self.weights["average"] = self.mean_prompt(domain)
            features, labels = self.plain_features(domain), domain.labels
            self.weights["anchors"] = nearest_to_mean(features, labels, self.classes)
            yield from domain.batches(config.batch_size, augment=config.augment)

    def specific(self, queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and spread of the specific prompts, both (blocks, n, tokens, width)."""
        first = self.weights["invariant"].detach()[:, :1].expand(-1, len(queries), -1)
        seen = torch.cat([first, queries.float().expand(len(first), -1, -1)], -1)
        mu, spread = (self._layers(seen, part) for part in ("mean", "spread"))
        return mu, F.softplus(spread - _SHIFT)

    @torch.no_grad()
    def mean_prompt(self, domain: TrainDomain) -> torch.Tensor:
        """The mean of mu over the images of a domain: mu of their mean, since it is linear."""
        return self.specific(domain.features().mean(0, keepdim=True))[0][:, 0]

    def encode(self, images: torch.Tensor, specific: torch.Tensor) -> torch.Tensor:
        """The class token under specific prompts (blocks, n, tokens, width)."""
        share = self.context.config.average_share
        adapters = []
        for invariant, average, own in zip(
            self.weights["invariant"], self.weights["average"], specific, strict=True
        ):
            mixed = share * average + (1 - share) * own
            adapters.append(
                BlockAdapter(tokens=torch.cat([invariant.expand(len(own), -1, -1), mixed], 1))
            )
        return self.class_token(images, adapters)

    def features(self, batch: Batch) -> torch.Tensor:
        """Every image under its own prompts, without noise."""

        def encode(images: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
            return self.encode(images, self.specific(queries)[0])

        return self.context.backbone.run_with(encode, batch.images, batch.features)

    def _layers(self, x: torch.Tensor, part: str) -> torch.Tensor:
        first, second = (
            (self.weights[f"{part}.{i}.weight"], self.weights[f"{part}.{i}.bias"]) for i in range(2)
        )
        return F.linear(F.linear(x, *first), *second).unflatten(-1, (-1, self.shape.width))


def two_layers(seen: int, hidden: int, made: int, generator: torch.Generator) -> State:
    """Two linear layers with nothing in between, in U(-b, b) with b = 1 / sqrt(inputs)."""
    state = {}
    for i, (inputs, outputs) in enumerate(((seen, hidden), (hidden, made))):
        bound = inputs**-0.5
        for name, shape in (("weight", (outputs, inputs)), ("bias", (outputs,))):
            state[f"{i}.{name}"] = torch.empty(shape).uniform_(-bound, bound, generator=generator)
    return state


def divergence(mu: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """KL from N(mu, std^2) to N(0, 1) of (blocks, n, ...): sums, per block and image."""
    each = mu.square() + std.square() - 2 * std.log() - 1
    return each.sum() / 2 / (mu.shape[0] * mu.shape[1])


def nearest_to_mean(features: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """Of every class the feature that is most similar to the class mean, (C, d)."""
    similar = similarity(features, class_sums(features, labels, classes)[None])
    others = F.one_hot(labels, classes) == 0
    return features[similar.masked_fill(others, -torch.inf).argmax(0)]


def to_anchors(features: torch.Tensor, anchors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """1 - cos to the anchor of the own class: mean over images of a class, then over classes."""
    far = 1 - F.cosine_similarity(features, anchors[labels], dim=-1)
    members = F.one_hot(labels, len(anchors)).to(far)
    counts = members.sum(0)
    return (far @ members / counts.clamp(min=1)).sum() / (counts > 0).sum()
