"""L2P: a pool of prompts, from which every image picks those whose keys are most like it.

Paper: Wang et al., Learning to Prompt for Continual Learning, CVPR 2022. There are M pairs of a key
k_i and a prompt P_i, a few tokens. With the frozen query q of an image and its N most similar keys

    S = top-N over i of cos(q, k_i),      tokens = [class, P_i for i in S, patches],
    loss = cross-entropy - lam mean over images of sum over i in S of cos(q, k_i)

The head classifies the mean of the prompts' output tokens, not the class token (`head_input`). Pool
and head are the same in all domains: nothing protects them. The choice of prompts has no gradient,
so keys learn from the second term only, and prompts that are never picked never learn. The record
says what share of the last domain's choices each prompt had (`usage`).

Different from the original:
- Every image picks for itself. The original code takes what most images of a batch want, also in
  testing, where a prediction then depends on its neighbours.
- Only prompts, keys and head are trained. The original's one configuration for domains (CORe50)
  also trains the whole transformer.
- Prompts are put before CLIP's first norm (`before_norm`) and start small; the range (-1, 1) of the
  original is far from CLIP's tokens.
- The query is the frozen embedding: see `prompt_keys.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, RequestError, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, image_tokens

from ..towers.adapted_training import AdaptedConfig, AdaptedMethod
from .prompt_keys import cosine


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of l2p."""

    lr: float = option(0.0075, "learning rate of Adam", minimum=0)
    gradient_clip: float | None = option(
        1.0, "largest norm of a gradient; none sets no limit", minimum=0
    )
    pool_size: int = option(10, "prompts in the pool", minimum=1)
    prompt_length: int = option(5, "tokens of a prompt", minimum=1)
    prompts_per_image: int = option(5, "prompts that an image picks", minimum=1)
    key_weight: float = option(
        0.1, "weight of the term that pulls picked keys towards queries", minimum=0
    )
    before_norm: bool = option(True, "prompts pass the tower's first norm like other tokens")
    head_input: Literal["prompts", "class"] = option(
        "prompts", "output tokens that the head classifies: those of the prompts or the class token"
    )


class L2P(AdaptedMethod):
    """One pool of prompts for all domains."""

    Config: ClassVar[type] = Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, width = context.config, self.shape.width
        if config.prompts_per_image > config.pool_size:
            raise RequestError(
                f"an image cannot pick {config.prompts_per_image} prompts from a pool of "
                f"{config.pool_size}",
                "Set pool_size to a larger number, or prompts_per_image to a smaller one.",
            )
        start = context.generator("pool")
        keys = torch.empty(config.pool_size, context.backbone.embed_dim)
        shape = (config.pool_size, config.prompt_length, width)
        prompts = 0.02 * torch.randn(shape, generator=start)
        self.add({"keys": keys.uniform_(-1, 1, generator=start), "prompts": prompts})
        self._usage: list[float] = []

    def learn(self, domain: TrainDomain) -> None:
        """Continue training pool and head."""
        queries = domain.features()

        def loss(batch: TrainBatch) -> torch.Tensor:
            asked = queries[batch.positions]
            with self.context.backbone.autocast():
                features = self.encode(batch.images, asked)
            similar, _ = self.pick(asked)
            pull = self.context.config.key_weight * similar.sum(1).mean()
            return F.cross_entropy(self.logits(features.float()), batch.labels) - pull

        self.train(domain, ["keys", "prompts", *self.head_names()], loss)
        picked = self.pick(queries)[1].flatten().bincount(minlength=len(self.weights["keys"]))
        self._usage = [round(share, 3) for share in (picked / picked.sum()).tolist()]

    def pick(self, queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Similarities of the picked keys and their places in the pool, both (n, picked)."""
        similarity = cosine(queries, self.weights["keys"])
        found = similarity.topk(self.context.config.prompts_per_image, dim=1)
        return found.values, found.indices

    def encode(self, images: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """What the head reads, (n, width)."""
        prompts = self.weights["prompts"][self.pick(queries)[1]].flatten(1, 2)
        if self.context.config.before_norm:
            prompts = self.visual.ln_pre(prompts)
        adapters = [BlockAdapter(tokens=prompts), *[BlockAdapter()] * (self.shape.blocks - 1)]
        if self.context.config.head_input == "class":
            return self.class_token(images, adapters)
        checkpoint = self.context.backbone.checkpoint(images=len(images))
        outputs = image_tokens(self.visual, images, adapters, checkpoint=checkpoint)
        return self.visual.ln_post(outputs.prompts).mean(1)

    def features(self, batch: Batch) -> torch.Tensor:
        """Every image under the prompts that it picks."""
        return self.context.backbone.run_with(self.encode, batch.images, batch.features)

    def diagnostics(self) -> dict[str, Any]:
        """How often each prompt was picked in the last domain, as a share of all choices."""
        return {"usage": self._usage}
