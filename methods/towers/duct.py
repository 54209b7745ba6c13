"""DUCT: every domain fine-tunes CLIP from its own weights, and the changes are added up.

Paper: Zhou et al., Dual Consolidation for Pre-Trained Model-Based Domain-Incremental Learning, CVPR
2025; read was the authors' version for new classes, which says it is modified. With the weights
theta_0 of CLIP's image tower and theta_t, fine-tuned from theta_0 on domain t,

    M_t = M_{t-1} + a sim_t (theta_t - theta_0),       images are classified with theta_0 + M_t
    sim_t = mean over classes of cos( class mean under theta_0, class mean under theta_t )

`head=text` (the method `duct-text`) ends here: text embeddings classify. With `head=cosine` every
domain has a row for every class, W_t, trained with the tower by cross-entropy on s cos(z, W_t) over
the domain's own rows, then again on the merged tower, which stays as it is. Earlier rows follow by
optimal transport P between the class means c under theta_0, with the cost |c_ti - c_sj|:

    W_s <- (1 - r) n(W_s) + r C P' n(W_t),             prediction = argmax_c max_t cos(z, W_tc)

Different from the original:
- The rows start at the text embeddings, later at n(w_c + class mean). In the original they start at
  zero, where the direction of the first huge step stays for good. s is CLIP's and fixed.
- AdamW with small rates and a number of steps, as for all towers here. That of the rows, 1e-4, was
  chosen on a validation part of the base domain of the embedded world. The rows are trained again
  on plain views, which are embedded once, for half as many steps.
- a = 0.25, but 0.5 for the base domain, whose change would also be cut to a quarter.
- `transport=barycentric`: P has entries that sum to 1, so that P'W_t is C times too small and moves
  nothing; it is multiplied by C here, and rows have unit length before they are mixed.
  `transport=paper` leaves C out. In a stream of domains a class is nearest to itself, so that
  `transport=identity`, which matches every class with itself, is nearly the same.
- With K = 1 the class mean of a domain is the feature of one image: `duct` keeps such means, and
  boards mark it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainDomain, option

from .tower_training import TowerConfig, TowerMethod

_REGULARISATION = 0.02  # of the transport
_ITERATIONS = 1000


@dataclass(frozen=True)
class Config(TowerConfig):
    """Options of duct."""

    head: Literal["cosine", "text"] = option(
        "cosine", "trained rows for every domain, or the frozen classifier made of class names"
    )
    merge: float = option(0.25, "share of what a later domain changes", minimum=0)
    merge_base: float = option(0.5, "share of what the base domain changes", minimum=0)
    similarity: bool = option(True, "multiply the share by the similarity of class means")
    head_lr: float = option(1e-4, "learning rate of the rows", minimum=0)
    transport: Literal["barycentric", "paper", "identity"] = option(
        "barycentric", "how earlier rows follow: C P', P' as published, or every class itself"
    )
    transport_share: float = option(
        0.25, "share r of the newest rows in earlier ones", minimum=0, maximum=1
    )


class DUCT(TowerMethod):
    """One merged tower, and rows that follow it."""

    Config = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = TowerMethod.presets

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.visual: Any = context.backbone.model.visual
        self.rows = self.text.new_zeros(0, *self.text.shape)
        self.means = self.text.new_zeros(0, *self.text.shape)  # under CLIP's own weights
        self._share = 0.0

    def learn(self, domain: TrainDomain) -> None:
        """Fine-tune CLIP, merge, train the rows again, let earlier rows follow."""
        config, clip = self.context.config, dict(self.visual.named_parameters())
        # Before the base domain the tower is CLIP's.
        merged = {name: p.detach().clone() for name, p in self.tower.named_parameters()}
        frozen = unit_means(domain.features(), domain.labels, len(self.text))
        self.tower.load_state_dict(self.visual.state_dict())
        start = self.text if not domain.index else F.normalize(self.text + frozen, dim=1)
        rows = start.clone().requires_grad_(config.head == "cosine")
        self._train_both(domain, rows)
        share = config.merge if domain.index else config.merge_base
        if config.similarity:
            tuned = unit_means(self._embedded(domain), domain.labels, len(self.text))
            share *= float((frozen * tuned).sum(1).mean())
        merge(dict(self.tower.named_parameters()), merged, clip, share)
        self._share = share
        if config.head == "text":
            return
        self._train_rows(domain, rows)
        rows = rows.detach()
        earlier = [self._moved(s, rows, frozen) for s in range(len(self.rows))]
        self.rows = torch.stack([*earlier, rows])
        self.means = torch.cat([self.means, frozen[None]])

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose row or text is most similar to the merged tower's embedding."""
        z = self.embed(batch)
        if self.context.config.head == "text":
            return (z @ self.text.T).argmax(1)
        return torch.einsum("nd,tcd->ntc", z, F.normalize(self.rows, dim=-1)).amax(1).argmax(1)

    def state_dict(self) -> State:
        """The merged tower, and the rows and class means of all domains."""
        own = {"rows": self.rows, "means": self.means}
        return super().state_dict() | (own if self.context.config.head == "cosine" else {})

    def load_state_dict(self, state: State) -> None:
        """Load them."""
        super().load_state_dict({k: v for k, v in state.items() if k.startswith("tower.")})
        if "rows" in state:
            self.rows, self.means = state["rows"].clone(), state["means"].clone()

    def trained_parameters(self) -> int:
        """All weights of the tower, and the rows of a domain."""
        rows = self.text.numel() if self.context.config.head == "cosine" else 0
        return super().trained_parameters() + rows

    def diagnostics(self) -> dict[str, Any]:
        """The share of the last domain's change."""
        return {"share": round(self._share, 5)}

    def _train_both(self, domain: TrainDomain, rows: torch.Tensor) -> None:
        """Train the tower and the domain's rows; with the text head, the tower alone."""
        config, backbone = self.context.config, self.context.backbone
        steps = config.steps if domain.index else config.base_steps(len(domain))
        if config.head == "text":
            self.train([domain], steps)
            return
        optimizer = torch.optim.AdamW(
            [
                {"params": list(self.tower.parameters()), "weight_decay": config.weight_decay},
                {"params": [rows], "lr": config.head_lr, "weight_decay": 0.0},
            ],
            lr=config.lr,
            fused=self.context.fused,
        )
        for batch in domain.batches(config.batch_size, steps=steps, augment=config.augment):
            with backbone.autocast():
                raw = self.tower(batch.images)
            loss = self._loss(F.normalize(raw.float(), dim=1), rows, batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def _train_rows(self, domain: TrainDomain, rows: torch.Tensor) -> None:
        """Train the rows on the merged tower."""
        config, labels = self.context.config, domain.labels
        steps = (config.steps if domain.index else config.base_steps(len(domain))) // 2
        z = self._embedded(domain)
        optimizer = torch.optim.AdamW([rows], lr=config.head_lr, weight_decay=0.0)
        generator = self.context.generator("rows", domain.index)
        for _ in range(steps):
            chosen = torch.randperm(len(z), generator=generator)[: config.batch_size].to(z.device)
            optimizer.zero_grad()
            self._loss(z[chosen], rows, labels[chosen]).backward()
            optimizer.step()

    def _loss(self, z: torch.Tensor, rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.context.backbone.logit_scale * z @ F.normalize(rows, dim=1).T
        return F.cross_entropy(logits, labels)

    def _embedded(self, domain: TrainDomain) -> torch.Tensor:
        """The domain's plain views under the tower as it is now, in the domain's order."""
        size, backbone = self.context.config.batch_size, self.context.backbone
        batches = domain.batches(size, augment=False, shuffle=False)
        return torch.cat([backbone.embed_with(self.tower, batch.images) for batch in batches])

    def _moved(self, s: int, newest: torch.Tensor, means: torch.Tensor) -> torch.Tensor:
        """The rows of an earlier domain after the transport."""
        config, rows = self.context.config, self.rows[s]
        if not config.transport_share:
            return rows
        carried = F.normalize(newest, dim=1)
        if config.transport != "identity":
            plan = transport_plan(torch.cdist(means, self.means[s])).to(carried)
            factor = len(plan) if config.transport == "barycentric" else 1
            carried = factor * plan.T @ carried
        return torch.lerp(F.normalize(rows, dim=1), carried, config.transport_share)


def unit_means(z: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """The directions of class means, (C, d); zero for a class without images."""
    return F.normalize(F.one_hot(labels, classes).to(z).T @ z, dim=1)


@torch.no_grad()
def merge(
    tuned: dict[str, torch.Tensor],
    merged: dict[str, torch.Tensor],
    clip: dict[str, torch.Tensor],
    share: float,
) -> None:
    """Replace the `tuned` weights by merged + share (tuned - clip), in place."""
    for name, weight in tuned.items():
        weight.copy_(merged[name] + share * (weight - clip[name]))


def transport_plan(cost: torch.Tensor, regularisation: float = _REGULARISATION) -> torch.Tensor:
    """The plan between uniform weights that entropy makes smooth (Sinkhorn), (C, C), in logs."""
    kernel = -cost.double() / regularisation
    target = -torch.log(torch.tensor(float(len(cost)), dtype=torch.float64, device=cost.device))
    left, right = (kernel.new_zeros(len(cost)) for _ in range(2))
    for _ in range(_ITERATIONS):
        left = target - (kernel + right).logsumexp(1)
        right = target - (kernel + left[:, None]).logsumexp(0)
    return (kernel + left[:, None] + right).exp()
