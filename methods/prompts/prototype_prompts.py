"""What prompt methods have in common that classify by class prototypes: ASP and SEC-Prompt.

The base domain trains prompts under a cosine head with rows w_c and a learned factor sigma,

    loss = cross-entropy( sigma cos(f, w_c), y ) + what a method adds,

by SGD with momentum and a cosine schedule. The rows are then replaced by the class means of the
features f, the class token after the last norm, and so they are in every later domain
(`domain_prototypes.py` says what becomes of those before). So the head can hold nothing of an
image but its share in a mean, which is all of it where a class has a single image.

In the originals the rows start at random in the base domain. Here they start at class means: few
passes pull features to random rows and no further, which is worse than no training at all.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, TrainDomain, option

from ..domain_prototypes import MODES, class_sums, remember, similarity
from ..plain_views import plain_views
from ..towers.trained_additions import BaseTrainingConfig, TrainedAdditions


@dataclass(frozen=True)
class PrototypePromptConfig(BaseTrainingConfig):
    """Options of both methods."""

    lr: float = option(0.01, "learning rate of SGD at the start", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "cosine", "course of the learning rate over the steps of a domain"
    )
    momentum: float = option(0.9, "momentum of SGD", minimum=0, maximum=1)
    weight_decay: float = option(5e-4, "weight decay of SGD", minimum=0)
    base_epochs: int = option(20, "passes over the base domain", minimum=0)
    prompt_length: int = option(3, "tokens of each of the two prompts of a block", minimum=1)
    scale: float = option(16.0, "factor sigma on cosines at the start of training", minimum=0)
    prototypes: Literal["domain-max", "running", "overwrite"] = option("domain-max", MODES)


class PrototypePrompts(TrainedAdditions):
    """Prompts in the blocks of the tower, and class prototypes."""

    Config: ClassVar[type] = PrototypePromptConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        shape = (0, self.classes, self.shape.width)
        self.add({"prototypes": torch.zeros(shape), "scale": torch.tensor(context.config.scale)})

    @abstractmethod
    def features(self, batch: Batch) -> torch.Tensor:
        """The class token under the prompts, (n, width), without gradients."""

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the most similar prototype."""
        return similarity(self.features(batch), self.weights["prototypes"]).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """The features that prototypes are compared with."""
        return self.features(batch)

    def optimizer(self, trained: list[torch.Tensor], domain: TrainDomain) -> torch.optim.Optimizer:
        """SGD for a domain."""
        config = self.context.config
        return torch.optim.SGD(
            trained,
            lr=self.rate_in(domain),
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )

    def rate_in(self, domain: TrainDomain) -> float:
        """The learning rate at the start of a domain."""
        del domain
        rate: float = self.context.config.lr
        return rate

    def class_means(self, domain: TrainDomain) -> torch.Tensor:
        """Rows of the cosine head to start a domain with, (C, width): only directions count."""
        return F.normalize(class_sums(self.plain_features(domain), domain.labels, self.classes))

    def plain_features(self, domain: TrainDomain) -> torch.Tensor:
        """Features of the plain views of a domain, (n, width)."""
        queries = domain.features() if "features" in self.inputs else None
        return torch.cat(
            [
                self.features(Batch(images, None if queries is None else queries[part]))
                for part, images in plain_views(domain)
            ]
        )

    def remember(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """Turn the features of a domain into prototypes."""
        sums = class_sums(features, labels, self.classes)
        mode = self.context.config.prototypes
        self.weights["prototypes"] = remember(self.weights["prototypes"], sums, mode)
