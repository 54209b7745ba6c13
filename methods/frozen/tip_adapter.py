"""Tip-Adapter: CLIP's text classifier, and a cache of training features beside it.

Paper: Zhang et al., Tip-Adapter: Training-free Adaption of CLIP for Few-shot Classification, 2022.
With unit features z, CLIP's scale s, text embeddings w_c, and keys k_i with labels y_i,

    logit_c = s z . w_c  +  alpha sum over i with y_i = c of exp( -beta (1 - z . k_i) )

A key is the mean over `views` augmented views of an image, scaled to unit length. Tip-Adapter-F
(`finetune=true`, the method `tip-adapter-f`) then trains the keys of the new domain on those views,
by cross-entropy and AdamW with a cosine schedule; keys of earlier domains stay as they are.

The cache holds features of single images: no images are kept, but this is a memory of samples, and
boards mark it. Only a few images per class of the base domain are taken, or they would outweigh all
later ones; with `base_keys=means` it has one key per class instead, the direction of the mean.

Different from the original: the stream, s instead of 100, and alpha and beta, which the original
searches on validation or test images, are fixed beforehand, and so is the number of steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..embedded import on_embedded_worlds
from ..text_classifier import class_embeddings, templates_option


@dataclass(frozen=True)
class Config:
    """Options of tip-adapter."""

    alpha: float = option(1.17, "weight of the cache against the text", minimum=0)
    beta: float = option(1.0, "sharpness of the similarity to a key", minimum=0)
    views: int = option(10, "augmented views per key; 0 for the plain view", minimum=0)
    base_keys: Literal["images", "means"] = option(
        "images", "keys of the base domain: some of its images, or the mean of each class"
    )
    base_images: int = option(16, "at most so many images per class of the base domain", minimum=1)
    finetune: bool = option(False, "train the keys (Tip-Adapter-F)")
    lr: float = option(1e-3, "learning rate of AdamW on the keys", minimum=0)
    batch_size: int = option(256, "features per training step", minimum=1)
    steps: int = option(100, "training steps for a domain", minimum=0)
    templates: tuple[str, ...] = templates_option()


class Cache(NamedTuple):
    """What a domain puts into the cache."""

    keys: torch.Tensor  # (n, d)
    labels: torch.Tensor  # (n,)


class TipAdapter(Method):
    """Text and cache together."""

    Config = Config
    #: About the published twenty passes over the views of one or two shots, and not under 50 steps.
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {"steps": 50},
        "core50": {"steps": 100},
        "domainnet": {"steps": 300},
        **on_embedded_worlds("steps"),
    }
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {
        "base_images": "a small slice has fewer images in a class",
        "batch_size": "a small slice has fewer views in a domain",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = class_embeddings(context, context.config.templates)
        self.caches: list[Cache] = []

    def learn(self, domain: TrainDomain) -> None:
        """Put the domain into the cache."""
        config = self.context.config
        views, labels = self._views(domain)
        means = F.normalize(views.mean(1), dim=-1)
        if self._as_means(domain):
            members = F.one_hot(labels, len(self.text)).to(means)
            present = members.any(0)
            own = Cache(F.normalize(members.T @ means, dim=-1)[present], present.nonzero()[:, 0])
        else:
            own = Cache(means, labels)
        self.caches.append(self._trained(own, views, labels, domain) if config.finetune else own)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the largest logit."""
        return self.logits(batch.features).argmax(1)

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        """Text and cache on unit features (n, d)."""
        logits = self.context.backbone.logit_scale * z @ self.text.T
        return logits + sum(self._cached(z, cache) for cache in self.caches)

    def state_dict(self) -> State:
        """Keys and labels, domain by domain."""
        return {
            f"{t}.{name}": value
            for t, cache in enumerate(self.caches)
            for name, value in cache._asdict().items()
        }

    def load_state_dict(self, state: State) -> None:
        """Load keys and labels."""
        count = len(state) // len(Cache._fields)
        self.caches = [Cache(state[f"{t}.keys"], state[f"{t}.labels"]) for t in range(count)]

    def trained_parameters(self) -> int:
        """The keys of the last domain, if they are trained."""
        trained = self.caches[-1:] if self.context.config.finetune else []
        return sum(cache.keys.numel() for cache in trained)

    def _cached(self, z: torch.Tensor, cache: Cache) -> torch.Tensor:
        config = self.context.config
        values = F.one_hot(cache.labels, len(self.text)).to(z)
        return config.alpha * (-config.beta * (1 - z @ cache.keys.T)).exp() @ values

    def _as_means(self, domain: TrainDomain) -> bool:
        """Whether the domain's keys are class means, from plain views since its images are many."""
        return domain.index == 0 and self.context.config.base_keys == "means"

    def _views(self, domain: TrainDomain) -> tuple[torch.Tensor, torch.Tensor]:
        """Frozen features of some images, (n, views, d), and their labels."""
        config, labels = self.context.config, domain.labels
        chosen = self._chosen(domain)
        if not config.views or self._as_means(domain):
            return domain.features()[chosen][:, None], labels[chosen]
        encode, parts = self.context.backbone.encode_image, chosen.split(256)
        views = [
            torch.cat([encode(domain.take(part.tolist(), draw=draw).images) for part in parts])
            for draw in range(config.views)
        ]
        return torch.stack(views, 1), labels[chosen]

    def _chosen(self, domain: TrainDomain) -> torch.Tensor:
        """Positions of the images that go into the cache: of the base domain only some."""
        config, labels = self.context.config, domain.labels
        if domain.index or self._as_means(domain):
            return torch.arange(len(domain), device=labels.device)
        order = torch.randperm(len(domain), generator=self.context.generator("cache"))
        shuffled = labels.cpu()[order]
        few = [order[shuffled == c][: config.base_images] for c in range(len(self.text))]
        return torch.cat(few).sort().values.to(labels.device)

    def _trained(
        self, own: Cache, views: torch.Tensor, labels: torch.Tensor, domain: TrainDomain
    ) -> Cache:
        """The domain's cache after training its keys on the views; the rest is constant."""
        config = self.context.config
        z, wanted = views.flatten(0, 1), labels.repeat_interleave(views.shape[1])
        with torch.no_grad():
            constant = self.logits(z)
        keys = own.keys.clone().requires_grad_()
        optimizer = torch.optim.AdamW([keys], lr=config.lr, eps=1e-4, fused=self.context.fused)
        generator = self.context.generator("training", domain.index)
        with domain.training(config.steps) as advance:
            for step in range(config.steps):
                cosine = 0.5 * (1 + math.cos(math.pi * step / config.steps))
                optimizer.param_groups[0]["lr"] = config.lr * cosine
                rows = torch.randperm(len(z), generator=generator)[: config.batch_size]
                rows = rows.to(z.device)
                logits = constant[rows] + self._cached(z[rows], Cache(keys, own.labels))
                optimizer.zero_grad()
                F.cross_entropy(logits, wanted[rows]).backward()
                optimizer.step()
                advance()
        return Cache(keys.detach(), own.labels)
