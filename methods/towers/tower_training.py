"""What the methods that fine-tune the whole image tower have in common.

The head is CLIP's own and stays frozen: logits = s z w_c with the scale s and the text embeddings
w_c, so that only the tower f in z = n(f(x)) is trained, by cross-entropy and AdamW with a constant
learning rate. Every call of `train` begins with a fresh optimizer. The tower is in eval mode
throughout: CLIP has no dropout, and statistics of normalisation layers must not follow K images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..embedded import LIMITS, on_embedded_worlds
from ..text_classifier import class_embeddings, templates_option


@dataclass(frozen=True)
class TowerConfig:
    """Options of tower training; the defaults are for ViT-B/16."""

    lr: float = option(1e-5, "learning rate of AdamW", minimum=0)
    weight_decay: float = option(0.1, "weight decay of AdamW", minimum=0)
    batch_size: int = option(64, "images per step", minimum=1)
    base_epochs: int = option(1, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    augment: bool = option(True, "train on augmented views")
    templates: tuple[str, ...] = templates_option()

    def base_steps(self, images: int) -> int:
        """Gradient steps for a base domain of so many images."""
        return self.base_epochs * -(-images // self.batch_size)


class TowerMethod(Method):
    """A trained copy of the image tower under the frozen text head."""

    Config: ClassVar[type] = TowerConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cddb-hard": {"base_epochs": 2},
        "core50": {"base_epochs": 1},
        "domainnet": {"base_epochs": 1},
        **on_embedded_worlds(*LIMITS),
    }
    inputs = frozenset({"images"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = class_embeddings(context, context.config.templates)
        self.tower = context.backbone.visual_copy()

    def train(self, domains: Sequence[TrainDomain], steps: int) -> None:
        """Fit the tower to `domains`, which share every batch and weigh the same in the loss."""
        config, backbone = self.context.config, self.context.backbone
        optimizer = torch.optim.AdamW(
            self.tower.parameters(),
            lr=config.lr,
            weight_decay=config.weight_decay,
            fused=self.context.fused,
        )
        share = max(1, config.batch_size // len(domains))
        batches = [d.batches(share, steps=steps, augment=config.augment) for d in domains]
        for parts in zip(*batches, strict=True):
            with backbone.autocast():
                raw = self.tower(torch.cat([part.images for part in parts]))
            logits = backbone.logit_scale * F.normalize(raw.float(), dim=-1) @ self.text.T
            per_domain = logits.split([len(part.labels) for part in parts])
            # A mean of means: a domain with fewer images than its share still counts in full.
            losses = [
                F.cross_entropy(rows, part.labels)
                for rows, part in zip(per_domain, parts, strict=True)
            ]
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose text is most similar to the tower's embedding."""
        return (self.embed(batch) @ self.text.T).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """The tower's unit embeddings."""
        return self.context.backbone.embed_with(self.tower, batch.images)

    def state_dict(self) -> State:
        """The weights of the tower."""
        return {f"tower.{name}": value for name, value in self.tower.state_dict().items()}

    def load_state_dict(self, state: State) -> None:
        """Load the weights."""
        self.tower.load_state_dict(
            {name.removeprefix("tower."): value for name, value in state.items()}
        )

    def trained_parameters(self) -> int:
        """All weights of the tower."""
        return sum(weight.numel() for weight in self.tower.parameters())
