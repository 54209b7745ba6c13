"""RanPAC: ridge regression on a random, fixed, non-linear expansion of frozen features.

Paper: McDonnell et al., RanPAC: Random Projections and Pre-trained Models for Continual Learning,
2023. With a Gaussian matrix W (d, M) and one-hot labels Y, sums run over the domains

    h = relu(z W),  G = sum h^T h,  Q = sum h^T Y,      prediction = argmax_c [h (G + r I)^-1 Q]_c

G and Q are sums, so the outcome is ridge regression on all images seen, in whatever order. W
follows from the run's seed and is not part of the state.

Different from the original: no adapter is trained before; M is 2,000 by default, not 10,000; and
the ridge r is chosen on the base domain only (by squared error on a held-out fifth) and kept,
since a few-shot domain has nothing to hold out. With `balanced` an image weighs 1 / (number of
images of its domain).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from .base_holdout import hold_out

RIDGES = [10.0**power for power in range(-8, 9)]
_CHUNK = 4096  # images projected at once: the projections of a large domain do not fit in memory


@dataclass(frozen=True)
class Config:
    """Options of ranpac."""

    projection_size: int = option(2000, "width M of the random projection", minimum=1)
    balanced: bool = option(False, "let every domain weigh the same instead of every image")


class RanPAC(Method):
    """Ridge regression that grows by addition."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        size = context.config.projection_size
        shape = (context.backbone.embed_dim, size)
        draw = torch.randn(shape, generator=context.generator("projection"), dtype=torch.float64)
        self.projection = draw.to(context.device)
        self.gram = self.projection.new_zeros(size, size)
        self.targets = self.projection.new_zeros(size, len(context.class_names))
        self.ridge = self.projection.new_ones(())

    def learn(self, domain: TrainDomain) -> None:
        """Add the domain's G and Q; on the base domain also choose the ridge."""
        z, labels = domain.features().double(), domain.labels
        weight = 1 / len(z) if self.context.config.balanced else 1.0
        if domain.index == 0:
            fit, held = hold_out(len(z), self.context.generator("ridge"))
            fitted = self._statistics(z[fit], labels[fit], weight)
            judged = self._statistics(z[held], labels[held], weight)
            self.ridge = torch.full_like(self.ridge, best_ridge(*fitted, *judged))
            gram, targets = fitted[0] + judged[0], fitted[1] + judged[1]
        else:
            gram, targets = self._statistics(z, labels, weight)
        self.gram, self.targets = self.gram + gram, self.targets + targets
        self._solve()

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest regressed label."""
        return (self._project(batch.features.double()) @ self.weights).argmax(1)

    def state_dict(self) -> State:
        """G, Q and the ridge."""
        return {"gram": self.gram, "targets": self.targets, "ridge": self.ridge}

    def load_state_dict(self, state: State) -> None:
        """Load the sums and the ridge."""
        self.gram, self.targets, self.ridge = state["gram"], state["targets"], state["ridge"]
        self._solve()

    def diagnostics(self) -> dict[str, Any]:
        """The ridge that was chosen."""
        return {"ridge": float(self.ridge)}

    def _project(self, z: torch.Tensor) -> torch.Tensor:
        return (z @ self.projection).relu()

    def _statistics(
        self, z: torch.Tensor, labels: torch.Tensor, weight: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gram, targets = torch.zeros_like(self.gram), torch.zeros_like(self.targets)
        for part, part_labels in zip(z.split(_CHUNK), labels.split(_CHUNK), strict=True):
            h = self._project(part)
            gram += weight * (h.T @ h)
            targets += weight * (h.T @ F.one_hot(part_labels, targets.shape[1]).double())
        return gram, targets

    def _solve(self) -> None:
        identity = torch.eye(len(self.gram), dtype=self.gram.dtype, device=self.gram.device)
        self.weights = torch.linalg.solve(self.gram + self.ridge * identity, self.targets)


def best_ridge(
    gram: torch.Tensor,
    targets: torch.Tensor,
    held_gram: torch.Tensor,
    held_targets: torch.Tensor,
) -> float:
    """The ridge whose fit has the least squared error on the held-out images.

    |H X - Y|^2 = tr(X^T H^T H X) - 2 tr(X^T H^T Y) + const: the sums are enough, and in the basis
    of G's eigenvectors every ridge is a division.
    """
    values, vectors = torch.linalg.eigh(gram)
    targets, held_targets = vectors.T @ targets, vectors.T @ held_targets
    held_gram = vectors.T @ held_gram @ vectors

    def error(ridge: float) -> float:
        fit = targets / (values.clamp(min=0) + ridge)[:, None]
        return float((fit * (held_gram @ fit - 2 * held_targets)).sum())

    return min(RIDGES, key=error)
