"""What the methods have in common that train additions to the frozen image tower under a head.

`trained_additions.py` says how they are trained, `heads.py` which heads there are. The loss is the
cross-entropy of all classes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from fsdil_bench import Batch, Context, option

from ..text_classifier import templates_option
from .heads import TextHead, linear_logits, linear_start
from .trained_additions import AdditionConfig, TrainedAdditions


@dataclass(frozen=True)
class AdaptedConfig(AdditionConfig):
    """Options of training; methods may change the defaults."""

    head: Literal["linear", "text"] = option(
        "linear", "a trained linear classifier, or the frozen classifier made of class names"
    )
    templates: tuple[str, ...] = templates_option()


class AdaptedMethod(TrainedAdditions):
    """A frozen tower, trained additions to it, and a head."""

    Config: ClassVar[type] = AdaptedConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text: TextHead | None = None
        if context.config.head == "text":
            self.text = TextHead(context, context.config.templates)
        elif context.config.head == "linear":
            start = context.generator("head")
            self.add(linear_start(self.classes, self.shape.width, start))

    @abstractmethod
    def features(self, batch: Batch) -> torch.Tensor:
        """What the head classifies, (n, width), for test images."""

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

    def head_names(self) -> list[str]:
        """The weights of the head, which every domain continues to train."""
        return [name for name in self.weights if name.startswith("head.")]
