"""App: a tower that is fine-tuned very gently on the base domain, then one row per class.

Paper: Wang et al., On the Approximation Risk of Few-Shot Class-Incremental Learning, ECCV 2024, as
far as its released code goes, which its authors call the best-performing part. With the tower's
embedding e and a feature that keeps every number in (-1, 1),

    f = tanh(LayerNorm(e)),      logit_c = 16 cos(f, w_c),

the base domain trains all weights by cross-entropy with a label smoothing of 0.5, at a tiny rate.
The rows w_c are then replaced by class means. A later domain leaves the tower alone: its rows start
at its class means and take full-batch steps of SGD on the cross-entropy of its features.

In a stream of domains every class is new in every domain. So either the new rows replace the old
ones (`rows=overwrite`), and earlier domains are lost, or each domain keeps its own and a class is
as similar as the most similar of its rows (`rows=domain-max`). Then the rows of earlier domains are
frozen, and in training they count for wrong classes only (`domain_prototypes.py`). Without any step
this is nearest class mean on f.

Different from the original:
- Its e are the 1000 logits of an ImageNet classifier, which CLIP does not have. Here e is CLIP's
  embedding; LayerNorm starts with its usual ones and zeros.
- In the base domain the rows start at class means, too. The published description leaves this open,
  and at such a rate rows from noise would stay noise.
- The number of passes is fixed beforehand; the original takes the pass that is best on test images.
- The rate changes with every step instead of every pass: up in a straight line for a share of the
  steps (`warm_up`), then down along half a cosine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..domain_prototypes import class_sums, own_similarity, remember, similarity
from ..embedded import on_embedded_worlds
from ..plain_views import plain_views


@dataclass(frozen=True)
class Config:
    """Options of app."""

    lr: float = option(1e-6, "highest learning rate of AdamW on the base domain", minimum=0)
    weight_decay: float = option(0.05, "weight decay of AdamW", minimum=0)
    warm_up: float = option(
        0.4, "share of the steps in which the learning rate rises", minimum=0, maximum=1
    )
    smoothing: float = option(
        0.5, "share of the target that all classes have alike", minimum=0, maximum=1
    )
    scale: float = option(16.0, "factor on cosines", minimum=0)
    batch_size: int = option(128, "images per step", minimum=1)
    base_epochs: int = option(10, "passes over the base domain", minimum=0)
    augment: bool = option(True, "train the tower on augmented views")
    rows: Literal["domain-max", "overwrite"] = option(
        "domain-max", "every domain keeps its rows, or those of the last domain replace them"
    )
    row_lr: float = option(0.1, "learning rate of SGD on the rows of a later domain", minimum=0)
    row_iterations: int = option(
        1000, "full-batch steps on the rows of a later domain, which need no tower", minimum=0
    )

    def rate(self, steps: int, step: int) -> float:
        """The factor on the learning rate of the tower."""
        rising = self.warm_up * steps
        if step < rising:
            return (step + 1) / (rising + 1)
        return (1 + math.cos(math.pi * (step - rising) / max(1.0, steps - rising))) / 2


class App(Method):
    """A gently trained tower, and rows of every domain."""

    Config: ClassVar[type] = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 10},
        "domainnet": {"base_epochs": 2},
        **on_embedded_worlds("base_epochs", "batch_size"),
    }
    inputs = frozenset({"images"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        size, self.classes = context.backbone.embed_dim, len(context.class_names)
        self.tower = context.backbone.visual_copy()
        self.norm = torch.nn.LayerNorm(size, device=context.device)
        self.rows = torch.zeros(0, self.classes, size, device=context.device)
        self._trained = 0

    def learn(self, domain: TrainDomain) -> None:
        """Train the tower on the base domain; the rows of a later one on its features."""
        if domain.index == 0:
            self.train_tower(domain)
            self.rows = self.class_means(domain)[0][None]
        else:
            new = self.train_rows(*self.class_means(domain), domain)
            self.rows = remember(self.rows, new, self.context.config.rows)

    def train_tower(self, domain: TrainDomain) -> None:
        """Fit tower and norm to the base domain, under rows that are dropped afterwards."""
        config, backbone = self.context.config, self.context.backbone
        rows = self.class_means(domain)[0].requires_grad_()
        trained = [*self.tower.parameters(), *self.norm.parameters(), rows]
        self._trained = sum(weight.numel() for weight in trained)
        steps = config.base_epochs * -(-len(domain) // config.batch_size)
        optimizer = torch.optim.AdamW(
            trained,
            lr=config.lr,
            betas=(0.9, 0.95),
            weight_decay=config.weight_decay,
            fused=self.context.fused,
        )
        batches = domain.batches(config.batch_size, steps=steps, augment=config.augment)
        for step, batch in enumerate(batches):
            optimizer.param_groups[0]["lr"] = config.lr * config.rate(steps, step)
            with backbone.autocast():
                raw = self.tower(batch.images)
            cosines = similarity(self.squashed(raw), rows[None]).float()
            loss = F.cross_entropy(
                config.scale * cosines, batch.labels, label_smoothing=config.smoothing
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def train_rows(
        self,
        start: torch.Tensor,
        features: torch.Tensor,
        labels: torch.Tensor,
        domain: TrainDomain,
    ) -> torch.Tensor:
        """Rows (C, d) of a later domain after training on its features."""
        config, rows = self.context.config, start.clone().requires_grad_()
        self._trained = rows.numel()
        others = self.rows if config.rows == "domain-max" else self.rows[:0]
        optimizer = torch.optim.SGD([rows], lr=config.row_lr, momentum=0.9, dampening=0.9)
        with domain.training(config.row_iterations) as advance:
            for _ in range(config.row_iterations):
                cosines = own_similarity(features, labels, rows, others)
                optimizer.zero_grad()
                F.cross_entropy(config.scale * cosines.float(), labels).backward()
                optimizer.step()
                advance()
        return rows.detach()

    @torch.no_grad()
    def class_means(self, domain: TrainDomain) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean feature of every class, and features and labels of all plain views."""
        labels = domain.labels
        features = torch.cat([self.features(images) for _, images in plain_views(domain)])
        counts = labels.bincount(minlength=self.classes).clamp(min=1)
        return class_sums(features, labels, self.classes) / counts[:, None], features, labels

    def squashed(self, raw: torch.Tensor) -> torch.Tensor:
        """Features of raw embeddings."""
        return self.norm(raw.float()).tanh()

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Features of images, (n, d), without gradients."""
        return self.context.backbone.run_with(lambda x: self.squashed(self.tower(x)), images)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the most similar row."""
        return similarity(self.features(batch.images), self.rows).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """The features that rows are compared with."""
        return self.features(batch.images)

    def state_dict(self) -> State:
        """The weights of the tower and its norm, and the rows."""
        tower = {f"tower.{name}": value for name, value in self.tower.state_dict().items()}
        norm = {f"norm.{name}": value for name, value in self.norm.state_dict().items()}
        return tower | norm | {"rows": self.rows}

    def load_state_dict(self, state: State) -> None:
        """Load weights and rows."""
        for name, module in (("tower.", self.tower), ("norm.", self.norm)):
            own = {k.removeprefix(name): v for k, v in state.items() if k.startswith(name)}
            module.load_state_dict(own)
        self.rows = state["rows"]

    def trained_parameters(self) -> int:
        """Tower, norm and rows in the base domain; the rows of a later one."""
        return self._trained
