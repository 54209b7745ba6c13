"""LwF, learning without forgetting: the previous model teaches the new one on the new images.

Paper: Li and Hoiem, Learning without Forgetting, 2016. With the logits l of the model in training
and l' of the model as it was before the domain, on the same views,

    loss = cross-entropy(l, y)  +  alpha KL( softmax(a l' / T) || softmax(a l / T) )

averaged over the images of a step. The base domain has no teacher. How the tower is trained is
described in `penalised_training.py`; with alpha = 0 this is `finetune`.

Different from the original: all classes are known from the start, so the teacher covers all of
them, and there is no warm-up of new outputs. CLIP's logits are cosines times s = 100, which a
temperature of 2 leaves nearly one-hot; a = 10 / s scales them back to the range that the
temperature is meant for.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fsdil_bench import Context, TrainDomain, option

from .distillation import distillation
from .penalised_training import PenalisedConfig, PenalisedMethod


@dataclass(frozen=True)
class Config(PenalisedConfig):
    """Options of lwf."""

    alpha: float = option(1.0, "weight of the distillation", minimum=0)
    temperature: float = option(2.0, "temperature of the distillation", minimum=0.01)
    soft_scale: float = option(
        10.0, "scale of the cosines in the distillation, instead of CLIP's", minimum=0
    )


class LwF(PenalisedMethod):
    """Fine-tuning with the previous model as a teacher."""

    Config = Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.teacher: torch.nn.Module | None = None  # only while a later domain is learned
        self.teacher_head = self.head

    def learn(self, domain: TrainDomain) -> None:
        """Train; after the base domain, with a copy of the current model as the teacher."""
        if domain.index:
            self.teacher = copy.deepcopy(self.tower).requires_grad_(False)
            self.teacher_head = self.head.detach().clone()
        self.train_on(domain)
        self.teacher, self.teacher_head = None, self.head

    def penalty(self, images: torch.Tensor, logits: torch.Tensor) -> torch.Tensor | None:
        """The distillation."""
        config, backbone = self.context.config, self.context.backbone
        if self.teacher is None or not config.alpha:
            return None
        with torch.no_grad(), backbone.autocast():
            raw = self.teacher(images)
        z = F.normalize(raw.float(), dim=-1)
        taught = backbone.logit_scale * z @ self.teacher_head.T
        soften = config.soft_scale / backbone.logit_scale / config.temperature
        return config.alpha * distillation(soften * logits, soften * taught)
