"""What the methods that fine-tune the whole image tower have in common.

The head is CLIP's own: logits = s z w_c with the scale s, the text embeddings w_c and z = n(f(x)).
It stays frozen (`head=text`), so that only the tower f is trained, or the w_c are trained along as
the rows of a linear layer (`head=linear`): by cross-entropy, plus what a method adds to it, and
AdamW with a constant learning rate. Every call of `train` begins with a fresh optimizer. The tower
is in eval mode throughout: CLIP has no dropout, and statistics of normalisation layers must not
follow K images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, knob

from .text_head import class_embeddings, templates_knob


@dataclass(frozen=True)
class TowerConfig:
    """Knobs of tower training; the defaults are for ViT-B/16."""

    lr: float = knob(1e-5, "learning rate of AdamW", minimum=0)
    weight_decay: float = knob(0.1, "weight decay of AdamW", minimum=0)
    batch_size: int = knob(64, "images per step", minimum=1)
    base_epochs: int = knob(1, "passes over the base domain", minimum=0)
    steps: int = knob(100, "gradient steps for a few-shot domain", minimum=0)
    augment: bool = knob(True, "train on augmented views")
    head: Literal["text", "linear"] = knob(
        "text", "the text embeddings as they are, or as a linear layer that is trained, too"
    )
    templates: tuple[str, ...] = templates_knob()

    def base_steps(self, images: int) -> int:
        """Gradient steps for a base domain of so many images."""
        return self.base_epochs * -(-images // self.batch_size)


class TowerMethod(Method):
    """A trained copy of the image tower under CLIP's head."""

    Config: ClassVar[type] = TowerConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cddb-hard": {"base_epochs": 2},
        "core50": {"base_epochs": 1},
        "domainnet": {"base_epochs": 1},
        "drawn": {"lr": 1e-4, "batch_size": 64, "base_epochs": 2, "steps": 50},
    }
    inputs = frozenset({"images"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = class_embeddings(context, context.config.templates)
        self.head = self.text.clone().requires_grad_(context.config.head == "linear")
        self.tower = context.backbone.visual_copy()

    def weights(self) -> dict[str, torch.Tensor]:
        """All that is trained, by name."""
        named: dict[str, torch.Tensor] = {
            f"tower.{name}": weight for name, weight in self.tower.named_parameters()
        }
        return named | ({"head": self.head} if self.head.requires_grad else {})

    def train_on(self, domain: TrainDomain) -> None:
        """Fit the tower to a domain, for as long as the config says."""
        config = self.context.config
        self.train([domain], config.steps if domain.index else config.base_steps(len(domain)))

    def train(self, domains: Sequence[TrainDomain], steps: int) -> None:
        """Fit the tower to `domains`, which share every batch and weigh the same in the loss."""
        config, backbone = self.context.config, self.context.backbone
        optimizer = torch.optim.AdamW(
            self.weights().values(), lr=config.lr, weight_decay=config.weight_decay
        )
        share = max(1, config.batch_size // len(domains))
        batches = [d.batches(share, steps=steps, augment=config.augment) for d in domains]
        for parts in zip(*batches, strict=True):
            images = torch.cat([part.images for part in parts])
            with backbone.autocast():
                raw = self.tower(images)
            logits = self.logits(raw)
            per_domain = logits.split([len(part.labels) for part in parts])
            # A mean of means: a domain with fewer images than its share still counts in full.
            losses = [
                F.cross_entropy(rows, part.labels)
                for rows, part in zip(per_domain, parts, strict=True)
            ]
            loss = torch.stack(losses).mean()
            penalty = self.penalty(images, logits)
            optimizer.zero_grad()
            (loss if penalty is None else loss + penalty).backward()
            optimizer.step()

    def logits(self, raw: torch.Tensor) -> torch.Tensor:
        """The head on raw embeddings."""
        return self.context.backbone.logit_scale * F.normalize(raw.float(), dim=-1) @ self.head.T

    def penalty(self, images: torch.Tensor, logits: torch.Tensor) -> torch.Tensor | None:
        """What a method adds to the cross-entropy of a step; None if nothing."""
        del images, logits
        return None

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose row of the head is most similar to the tower's embedding."""
        return (self.embed(batch) @ self.head.detach().T).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """The tower's unit embeddings."""
        return self.context.backbone.embed_with(self.tower, batch.images)

    def state_dict(self) -> State:
        """The weights of the tower, and of the head if it is trained."""
        tower = {f"tower.{name}": value for name, value in self.tower.state_dict().items()}
        return tower | ({"head": self.head.detach()} if self.head.requires_grad else {})

    def load_state_dict(self, state: State) -> None:
        """Take over the weights."""
        tower = {k.removeprefix("tower."): v for k, v in state.items() if k.startswith("tower.")}
        self.tower.load_state_dict(tower)
        if "head" in state:
            self.head = state["head"].clone().requires_grad_()

    def trained_parameters(self) -> int:
        """All weights of the tower, and of the head if it is trained."""
        return sum(weight.numel() for weight in self.weights().values())
