"""What the methods that train additions to the frozen image tower have in common.

All that such a method remembers is `weights`, tensors by name; those of domain t are called
"domains.t.something". They require gradients only while they are trained, so what earlier domains
have learned is neither changed nor differentiated. Training is Adam without weight decay, with a
fresh optimizer in every domain, on the cross-entropy of all classes. The budget is counted in
steps, because a pass over a few-shot domain is often a single batch.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from fsdil_bench import Batch, Context, Method, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, image_tokens, tower_shape

from ..text_classifier import templates_option
from .heads import TextHead, linear_logits, linear_start


@dataclass(frozen=True)
class AdaptedConfig:
    """Options of training; methods may change the defaults."""

    head: Literal["linear", "text"] = option(
        "linear", "a trained linear classifier, or the frozen classifier made of class names"
    )
    lr: float = option(1e-3, "learning rate of Adam", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "constant", "course of the learning rate over the steps of a domain"
    )
    gradient_clip: float | None = option(
        None, "largest norm of a gradient; none sets no limit", minimum=0
    )
    batch_size: int = option(64, "images per step", minimum=1)
    base_epochs: int = option(5, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    augment: bool = option(True, "train on augmented views")
    templates: tuple[str, ...] = templates_option()

    def steps_for(self, domain: TrainDomain) -> int:
        """Gradient steps for a domain."""
        if domain.index:
            return self.steps
        return self.base_epochs * -(-len(domain) // self.batch_size)

    def rate(self, steps: int) -> Callable[[int], float]:
        """The factor on the learning rate after a number of steps."""
        if self.schedule == "constant":
            return lambda step: 1.0
        return lambda step: (1 + math.cos(math.pi * step / max(1, steps))) / 2


class AdaptedMethod(Method):
    """A frozen tower, trained additions to it, and a head."""

    Config: ClassVar[type] = AdaptedConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 5},
        "domainnet": {"base_epochs": 2, "batch_size": 128},
        "drawn": {"base_epochs": 2, "batch_size": 32, "steps": 50},
    }
    inputs = frozenset({"images", "features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.visual: Any = context.backbone.model.visual
        self.shape = tower_shape(self.visual)
        self.classes = len(context.class_names)
        self.weights: State = {}
        self.text: TextHead | None = None
        self._trained = 0
        if context.config.head == "text":
            self.text = TextHead(context, context.config.templates)
        elif context.config.head == "linear":
            start = context.generator("head")
            self.add(linear_start(self.classes, self.shape.width, start))

    @abstractmethod
    def features(self, batch: Batch) -> torch.Tensor:
        """What the head classifies, (n, width), for test images."""

    def class_token(self, images: torch.Tensor, adapters: Sequence[BlockAdapter]) -> torch.Tensor:
        """The output token that most heads read, after its norm, (n, width)."""
        checkpoint = self.context.backbone.checkpoint(images=len(images))
        given = image_tokens(self.visual, images, adapters, checkpoint=checkpoint, lean=True)
        return self.visual.ln_post(given.tokens[:, 0])

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Of all classes."""
        if self.text is not None:
            return self.text.logits(features)
        return linear_logits(features, self.weights)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest logit."""
        return self.logits(self.features(batch)).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """Features, or with the text head unit embeddings."""
        features = self.features(batch)
        return features if self.text is None else self.text.embed(features)

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

    def head_names(self) -> list[str]:
        """The weights of the head, which every domain continues to train."""
        return [name for name in self.weights if name.startswith("head.")]

    def train(
        self,
        domain: TrainDomain,
        names: Iterable[str],
        loss: Callable[[TrainBatch], torch.Tensor],
    ) -> None:
        """Minimise the loss over the weights of these names."""
        config = self.context.config
        # Sorted, because a state that was loaded may have them in another order.
        trained = [self.weights[name].requires_grad_() for name in sorted(names)]
        self._trained = sum(weight.numel() for weight in trained)
        steps = config.steps_for(domain)
        optimizer = torch.optim.Adam(trained, lr=config.lr, fused=self.context.fused)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, config.rate(steps))
        for batch in domain.batches(config.batch_size, steps=steps, augment=config.augment):
            optimizer.zero_grad()
            loss(batch).backward()
            if config.gradient_clip is not None:
                torch.nn.utils.clip_grad_norm_(trained, config.gradient_clip)
            optimizer.step()
            rate.step()
        for weight in trained:
            weight.requires_grad_(False)
            weight.grad = None
