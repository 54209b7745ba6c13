"""DualPrompt: general prompts for all domains, expert prompts for each, found by a key.

Paper: Wang et al., DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning, ECCV
2022. Prompts are prefixes: rows in front of the keys and the values of a block, after projection.
The first blocks have general prompts G, trained in every domain; the blocks after them have expert
prompts E_t, trained only in domain t and started from E_(t-1). With the frozen query q of an image

    training      loss = cross-entropy under G, E_t - lam mean over images of cos(q, k_t)
    testing       t = argmax over domains of cos(q, k_t), then the classes under G, E_t

So it is a router, with one key per domain. G and the linear head change with every domain, and that
is where it forgets; `general_domains=base` keeps G as the base domain left it.

Different from the original:
- Every test image finds its own domain. The PyTorch code lets a batch vote.
- k_t starts at the mean query of its domain (`key_start`), which a random key would need many steps
  to reach; it is as long as the original's, because steps of Adam have a fixed length.
- Prefixes start small: the range (-1, 1) of the original saturates CLIP's attention.
- The query is the frozen embedding: see `prompt_keys.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, RouterMethod, TrainBatch, TrainDomain, option

from ..towers.adapted_training import AdaptedConfig, AdaptedMethod
from .prompt_keys import Prefix, cosine, prefix_adapters, require_blocks


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of dualprompt."""

    lr: float = option(0.005, "learning rate of Adam", minimum=0)
    gradient_clip: float | None = option(
        1.0, "largest norm of a gradient; none sets no limit", minimum=0
    )
    general_blocks: int = option(2, "first blocks, which get prompts for all domains", minimum=0)
    general_length: int = option(5, "rows of a general prefix", minimum=1)
    expert_blocks: int = option(
        3, "blocks after these, which get prompts for each domain", minimum=0
    )
    expert_length: int = option(5, "rows of an expert prefix", minimum=1)
    general_domains: Literal["all", "base"] = option(
        "all", "train general prompts in all domains, or in the base domain only"
    )
    key_weight: float = option(
        1.0, "weight of the term that pulls a domain's key towards queries", minimum=0
    )
    key_start: Literal["mean", "random"] = option(
        "mean", "a domain's key starts at its mean query, or at random"
    )


class DualPrompt(RouterMethod, AdaptedMethod):
    """General and expert prefixes."""

    Config: ClassVar[type] = Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = context.config
        require_blocks(
            self.shape,
            config.general_blocks + config.expert_blocks,
            "general_blocks + expert_blocks",
        )
        self.add({"general": self._start(config.general_blocks, config.general_length, "general")})

    def learn(self, domain: TrainDomain) -> None:
        """Train the domain's own prompts and key, and what all domains share."""
        t, config, queries = domain.index, self.context.config, domain.features()
        own = {"experts": self._first_experts(t), "key": self._first_key(t, queries)}
        self.add(own, f"domains.{t}.")
        names = [*(f"domains.{t}.{part}" for part in own), *self.head_names()]
        if t == 0 or config.general_domains == "all":
            names.append("general")

        def loss(batch: TrainBatch) -> torch.Tensor:
            here = torch.full_like(batch.labels, t)
            with self.context.backbone.autocast():
                features = self.encode(batch.images, here)
            similar = cosine(queries[batch.positions], self.weights[f"domains.{t}.key"][None])
            loss = F.cross_entropy(self.logits(features.float()), batch.labels)
            return loss - config.key_weight * similar.mean()

        self.train(domain, names, loss)

    def encode(self, images: torch.Tensor, domains: torch.Tensor) -> torch.Tensor:
        """The class token under the prompts of each image's domain, (n, width)."""
        general = self.weights["general"]
        experts = torch.stack(self.of_domains("experts"))
        # (domains, blocks, 2, length, width): of every image its own domain's, block by block.
        chosen = experts[domains].unbind(1)
        prefixes: dict[int, Prefix] = {b: (pair[0], pair[1]) for b, pair in enumerate(general)}
        for b, pair in enumerate(chosen, len(general)):
            prefixes[b] = (pair[:, 0], pair[:, 1])
        return self.class_token(images, prefix_adapters(self.shape, prefixes))

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """The domain with the most similar key."""
        return cosine(batch.features, torch.stack(self.of_domains("key"))).argmax(1)

    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """The class with the largest logit."""
        return self.logits(self.features_in(batch, domains)).argmax(1)

    def features(self, batch: Batch) -> torch.Tensor:
        """Features under the predicted domains."""
        return self.features_in(batch, self.predict_domain(batch))

    def features_in(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """Features under given domains."""
        return self.context.backbone.run_with(self.encode, batch.images, domains)

    def _start(self, blocks: int, length: int, purpose: str) -> torch.Tensor:
        start = self.context.generator(purpose)
        return 0.02 * torch.randn(blocks, 2, length, self.shape.width, generator=start)

    def _first_experts(self, t: int) -> torch.Tensor:
        config = self.context.config
        if t:
            return self.weights[f"domains.{t - 1}.experts"].clone()
        return self._start(config.expert_blocks, config.expert_length, "experts")

    def _first_key(self, t: int, queries: torch.Tensor) -> torch.Tensor:
        size = queries.shape[1]
        if self.context.config.key_start == "mean":
            return math.sqrt(size / 3) * F.normalize(queries.mean(0), dim=0)
        start = self.context.generator("key", t)
        return torch.empty(size).uniform_(-1, 1, generator=start)
