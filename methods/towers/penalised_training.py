"""What methods share that fine-tune the image tower with a penalty or a trained head.

    loss = cross-entropy of logits s z w_c  +  penalty

The head is CLIP's own. It stays frozen (`head=text`), or the text embeddings w_c are also trained,
as the rows of a linear layer (`head=linear`). Without a penalty and with the frozen head this is
exactly `finetune`; optimizer, budget and the rest are described in `tower_training.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainDomain, option

from .tower_training import TowerConfig, TowerMethod


@dataclass(frozen=True)
class PenalisedConfig(TowerConfig):
    """Options of tower training with a penalty."""

    head: Literal["text", "linear"] = option(
        "text", "text embeddings as they are, or as the start of a trained linear layer"
    )


class PenalisedMethod(TowerMethod):
    """A trained copy of the image tower, and of the head if asked for."""

    Config: ClassVar[type] = PenalisedConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.head = self.text.clone().requires_grad_(context.config.head == "linear")

    def penalty(self, images: torch.Tensor, logits: torch.Tensor) -> torch.Tensor | None:
        """What a method adds to the cross-entropy of a step; None if nothing."""
        del images, logits
        return None

    def weights(self) -> dict[str, torch.Tensor]:
        """All that is trained, by name."""
        named: dict[str, torch.Tensor] = {
            f"tower.{name}": weight for name, weight in self.tower.named_parameters()
        }
        return named | ({"head": self.head} if self.head.requires_grad else {})

    def train_on(self, domain: TrainDomain) -> None:
        """Fit tower and head to a domain, for as long as the config says."""
        config, backbone = self.context.config, self.context.backbone
        steps = config.steps if domain.index else config.base_steps(len(domain))
        optimizer = torch.optim.AdamW(
            self.weights().values(),
            lr=config.lr,
            weight_decay=config.weight_decay,
            fused=self.context.fused,
        )
        for batch in domain.batches(config.batch_size, steps=steps, augment=config.augment):
            with backbone.autocast():
                raw = self.tower(batch.images)
            logits = self.logits(raw)
            loss = F.cross_entropy(logits, batch.labels)
            penalty = self.penalty(batch.images, logits)
            optimizer.zero_grad()
            (loss if penalty is None else loss + penalty).backward()
            optimizer.step()

    def logits(self, raw: torch.Tensor) -> torch.Tensor:
        """The head on raw embeddings."""
        return self.context.backbone.logit_scale * F.normalize(raw.float(), dim=-1) @ self.head.T

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose row of the head is most similar to the tower's embedding."""
        return (self.embed(batch) @ self.head.detach().T).argmax(1)

    def state_dict(self) -> State:
        """The weights of the tower, and of the head if it is trained."""
        head = {"head": self.head.detach()} if self.head.requires_grad else {}
        return super().state_dict() | head

    def load_state_dict(self, state: State) -> None:
        """Load the weights."""
        super().load_state_dict({k: v for k, v in state.items() if k.startswith("tower.")})
        if "head" in state:
            self.head = state["head"].clone().requires_grad_()

    def trained_parameters(self) -> int:
        """All weights of the tower, and of the head if it is trained."""
        return sum(weight.numel() for weight in self.weights().values())
