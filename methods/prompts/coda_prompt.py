"""CODA-Prompt: prompts as weighted sums of components, more of which come with every domain.

Paper: Smith et al., CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free
Continual Learning, CVPR 2023. In each of the first blocks there are components P_m, with keys K_m
and attentions A_m. With the frozen query q of an image and x * y elementwise

    alpha_m = cos(q * A_m, K_m),      p = sum over m of alpha_m P_m,

and p is a prefix: one half of its rows stands in front of the block's keys, the other in front of
its values, after projection. Weights alpha have no softmax and may be negative. Every domain adds
components and trains them; all older ones still count in the sum, but are frozen. So there is
nothing to choose and no router. New components start as random unit vectors that are orthogonal to
each other and to the old ones, and a penalty can hold them there:

    loss = cross-entropy + mu sum over blocks of [o(K) + o(A) + o(P)],   o(M) = mean (M M' - 1)^2

Where the sum vanishes the prefix is zero, which is not the plain model: zeros are attended to.

Different from the original:
- Components are added when a domain comes, instead of being slices of a pool for a known number of
  domains, and there are fewer, for the sake of few shots.
- New components are orthogonal to all that old ones span; the original's way to make them so is
  exact only where the old ones are still orthogonal to each other.
- mu is 0, as in the published scripts; the paper relies on the penalty.
- The query is the frozen embedding: see `prompt_keys.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, TrainBatch, TrainDomain, option

from ..towers.adapted_training import AdaptedConfig, AdaptedMethod
from .components import PARTS, off_orthogonal, orthogonal
from .prompt_keys import prefix_adapters, require_blocks


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of coda-prompt."""

    lr: float = option(1e-3, "learning rate of Adam", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "cosine", "course of the learning rate over the steps of a domain"
    )
    blocks: int = option(5, "first blocks, which get prefixes", minimum=1)
    components: int = option(4, "components that a domain adds in every block", minimum=1)
    prefix_length: int = option(4, "rows of a prefix: keys, and as many values", minimum=1)
    orthogonality: float = option(
        0.0, "weight mu of the penalty on components that are not orthogonal", minimum=0
    )


class CODAPrompt(AdaptedMethod):
    """Components of all domains in one sum."""

    Config: ClassVar[type] = Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, size = context.config, context.backbone.embed_dim
        require_blocks(self.shape, config.blocks, "blocks")
        shapes = [(size,), (size,), (2 * config.prefix_length, self.shape.width)]
        self._none = {
            part: torch.empty(config.blocks, 0, *shape, device=context.device)
            for part, shape in zip(PARTS, shapes, strict=True)
        }

    def learn(self, domain: TrainDomain) -> None:
        """Train the domain's own components, and the head."""
        t, config, queries = domain.index, self.context.config, domain.features()
        self.add(self.new_components(t), f"domains.{t}.")
        own = [f"domains.{t}.{part}" for part in PARTS]

        def loss(batch: TrainBatch) -> torch.Tensor:
            with self.context.backbone.autocast():
                features = self.encode(batch.images, queries[batch.positions])
            loss = F.cross_entropy(self.logits(features.float()), batch.labels)
            if config.orthogonality:
                loss = loss + config.orthogonality * self.penalty()
            return loss

        self.train(domain, [*own, *self.head_names()], loss)

    def new_components(self, t: int) -> dict[str, torch.Tensor]:
        """What domain t starts from: unit vectors orthogonal to all there are."""
        count, start = self.context.config.components, self.context.generator("components", t)
        return {
            part: torch.stack([orthogonal(old, count, start) for old in self.so_far(part)])
            for part in PARTS
        }

    def so_far(self, part: str) -> torch.Tensor:
        """A part of the components of all domains, (blocks, m, ...)."""
        return torch.cat([self._none[part], *self.of_domains(part)], 1)

    def penalty(self) -> torch.Tensor:
        """How far all components are from being orthogonal unit vectors."""
        parts = (self.so_far(part).flatten(2) for part in PARTS)
        return torch.stack([off_orthogonal(rows).sum() for rows in parts]).sum()

    def prompts(self, queries: torch.Tensor) -> torch.Tensor:
        """The weighted sums, (blocks, n, 2 length, width)."""
        keys, attentions, components = (self.so_far(part) for part in PARTS)
        asked = F.normalize(queries[None, :, None] * attentions[:, None], dim=-1)
        alpha = torch.einsum("bnmd,bmd->bnm", asked, F.normalize(keys, dim=-1))
        return torch.einsum("bnm,bmlw->bnlw", alpha, components)

    def encode(self, images: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """The class token under each image's own prefixes, (n, width)."""
        length = self.context.config.prefix_length
        prefixes = {
            block: (rows[:, :length], rows[:, length:])
            for block, rows in enumerate(self.prompts(queries))
        }
        return self.class_token(images, prefix_adapters(self.shape, prefixes))

    def features(self, batch: Batch) -> torch.Tensor:
        """Every image under its own prefixes."""
        return self.context.backbone.run_with(self.encode, batch.images, batch.features)
