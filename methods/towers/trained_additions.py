"""Tensors that are trained beside a frozen image tower: what all methods with such additions share.

All that such a method remembers is `weights`, tensors by name; those of domain t are called
"domains.t.something". They require gradients only while they are trained, so what earlier domains
have learned is neither changed nor differentiated. Every domain begins with a fresh optimizer; it
is Adam without weight decay, unless a method chooses another. The budget is counted in steps,
because a pass over a few-shot domain is often a single batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from fsdil_bench import Context, Method, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, image_tokens, tower_shape

from ..embedded import LIMITS, on_embedded_worlds


@dataclass(frozen=True)
class BaseTrainingConfig:
    """Options of training on the base domain; methods may change the defaults."""

    lr: float = option(1e-3, "learning rate of Adam", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "constant", "course of the learning rate over the steps of a domain"
    )
    gradient_clip: float | None = option(
        None, "largest norm of a gradient; none sets no limit", minimum=0
    )
    batch_size: int = option(64, "images per step", minimum=1)
    base_epochs: int = option(5, "passes over the base domain", minimum=0)
    augment: bool = option(True, "train on augmented views")

    def steps_for(self, domain: TrainDomain) -> int:
        """Gradient steps for a domain."""
        return self.base_epochs * -(-len(domain) // self.batch_size) if domain.index == 0 else 0

    def rate(self, steps: int) -> Callable[[int], float]:
        """The factor on the learning rate after a number of steps."""
        if self.schedule == "constant":
            return lambda step: 1.0
        return lambda step: (1 + math.cos(math.pi * step / max(1, steps))) / 2


@dataclass(frozen=True)
class AdditionConfig(BaseTrainingConfig):
    """Options of training on all domains."""

    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)

    def steps_for(self, domain: TrainDomain) -> int:
        """Gradient steps for a domain."""
        return self.steps if domain.index else super().steps_for(domain)


class TrainedAdditions(Method):
    """A frozen tower and trained additions to it."""

    Config: ClassVar[type] = AdditionConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 5},
        "domainnet": {"base_epochs": 2, "batch_size": 128},
        **on_embedded_worlds(*LIMITS),
    }
    inputs = frozenset({"images", "features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.visual: Any = context.backbone.model.visual
        self.shape = tower_shape(self.visual)
        self.classes = len(context.class_names)
        self.weights: State = {}
        self._trained = 0

    def state_dict(self) -> State:
        """Everything that was trained, and what belongs to it."""
        return dict(self.weights)

    def load_state_dict(self, state: State) -> None:
        """Load copies, because training changes weights in place."""
        self.weights = {name: value.clone() for name, value in state.items()}

    def trained_parameters(self) -> int:
        """What was trained in the last domain."""
        return self._trained

    def add(self, tensors: State, prefix: str = "") -> None:
        """Add tensors to the weights."""
        device = self.context.device
        self.weights |= {prefix + name: value.to(device) for name, value in tensors.items()}

    def of_domains(self, part: str) -> list[torch.Tensor]:
        """One kind of weights of all domains so far, in the order of the domains."""
        names = [n for n in self.weights if n.startswith("domains.") and n.endswith(f".{part}")]
        return [self.weights[name] for name in sorted(names, key=lambda n: int(n.split(".")[1]))]

    def class_token(self, images: torch.Tensor, adapters: Sequence[BlockAdapter]) -> torch.Tensor:
        """The output token that most heads read, after its norm, (n, width)."""
        checkpoint = self.context.backbone.checkpoint(images=len(images))
        given = image_tokens(self.visual, images, adapters, checkpoint=checkpoint, lean=True)
        return self.visual.ln_post(given.tokens[:, 0])

    def optimizer(self, trained: list[torch.Tensor], domain: TrainDomain) -> torch.optim.Optimizer:
        """A fresh optimizer for a domain."""
        del domain
        return torch.optim.Adam(trained, lr=self.context.config.lr, fused=self.context.fused)

    def batches(self, domain: TrainDomain) -> Iterator[TrainBatch]:
        """What a domain is trained on, as many batches as it has steps."""
        config = self.context.config
        steps = config.steps_for(domain)
        return domain.batches(config.batch_size, steps=steps, augment=config.augment)

    def train(
        self,
        domain: TrainDomain,
        names: Iterable[str],
        loss: Callable[[TrainBatch], torch.Tensor],
        after_step: Callable[[], None] | None = None,
    ) -> None:
        """Minimise the loss over the weights of these names."""
        config = self.context.config
        # Sorted, because a state that was loaded may have them in another order.
        trained = [self.weights[name].requires_grad_() for name in sorted(names)]
        self._trained = sum(weight.numel() for weight in trained)
        optimizer = self.optimizer(trained, domain)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, config.rate(config.steps_for(domain)))
        for batch in self.batches(domain):
            optimizer.zero_grad()
            loss(batch).backward()
            if config.gradient_clip is not None:
                torch.nn.utils.clip_grad_norm_(trained, config.gradient_clip)
            optimizer.step()
            rate.step()
            if after_step is not None:
                after_step()
        for weight in trained:
            weight.requires_grad_(False)
            weight.grad = None
