"""How prompts are trained: by SGD with momentum and a cosine schedule, from a fresh optimizer.

The tensors of one domain are leaves of their own, and no others are handed to the optimizer. So
neither weight decay nor momentum can reach what belongs to another domain.

The length is a number of steps, as for the towers: `base_epochs` passes over the base domain, and
`steps` steps in a few-shot domain, where the papers' epochs would be a handful of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from fsdil_bench import TrainBatch, TrainDomain, option

Prompts = dict[str, torch.Tensor]
_WARM_UP_LR = 1e-5


@dataclass(frozen=True)
class PromptConfig:
    """Options of prompt training."""

    lr: float = option(0.01, "learning rate of SGD at the start", minimum=0)
    momentum: float = option(0.9, "momentum of SGD", minimum=0, maximum=1)
    weight_decay: float = option(2e-4, "weight decay of SGD", minimum=0)
    batch_size: int = option(128, "images per step", minimum=1)
    base_epochs: int = option(20, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    augment: bool = option(True, "train on augmented views")

    def total_steps(self, domain: TrainDomain) -> int:
        """Gradient steps for a domain."""
        return self.steps if domain.index else self.base_epochs * self.per_epoch(domain)

    def per_epoch(self, domain: TrainDomain) -> int:
        """Gradient steps in a pass over a domain."""
        return -(-len(domain) // self.batch_size)


def train_prompts(
    start: Mapping[str, torch.Tensor],
    domain: TrainDomain,
    config: PromptConfig,
    loss: Callable[[Prompts, TrainBatch], torch.Tensor],
    *,
    warm_up: bool = False,
) -> Prompts:
    """The tensors after training on the domain, beginning with copies of `start`.

    `warm_up` holds the rate at 1e-5 for the first pass, or a tenth of all steps if that is less.
    """
    prompts = {name: value.detach().clone().requires_grad_() for name, value in start.items()}
    if not prompts:
        return {}
    total = config.total_steps(domain)
    held = min(config.per_epoch(domain), total // 10) if warm_up else 0
    optimizer = torch.optim.SGD(
        prompts.values(),
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    batches = domain.batches(config.batch_size, steps=total, augment=config.augment)
    for step, batch in enumerate(batches):
        cosine = 0.5 * (1 + math.cos(math.pi * step / total))
        for group in optimizer.param_groups:
            group["lr"] = min(_WARM_UP_LR, config.lr) if step < held else config.lr * cosine
        optimizer.zero_grad()
        loss(prompts, batch).backward()
        optimizer.step()
    return {name: value.detach() for name, value in prompts.items()}
