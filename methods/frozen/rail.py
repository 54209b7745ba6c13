"""RAIL: ridge regression that is updated recursively, exactly, and mixed with zero-shot CLIP.

Paper: Xu et al., Advancing Cross-domain Discriminability in Continual Learning of Vision-Language
Models, 2024; this is its primal form. With a random, fixed, uniform matrix W_r (d, M),
h = relu(z W_r), one-hot labels Y and weights omega of the images

    R = (sum omega h' h + lam I)^-1,    W = R sum omega h' y               after the base domain
    R <- R - R h' (I + h R h')^-1 h R,  W <- W + R h' (y - h W)            a batch of a later one
    prediction = argmax_c of (1 - b) softmax(s z . w_c) + b h W

where the rows of h and y are multiplied by sqrt(omega). The result is ridge regression on all
images seen, in whatever order. W_r follows from the run's seed and is not part of the state. With
`projection_size=0` it is h = z. RanPAC differs by its Gaussian projection, by a ridge that it
chooses on the base domain, and by having neither weights nor text.

Different from the original:
- Its tasks have new classes, and zero-shot CLIP decides whether an image is of a learned one. Here
  all classes are learned from the base domain on, so that every image gets the mixture.
- M is 2,000, not 15,000, and h is multiplied by sqrt(15,000 / M): lam = 0.1 was made for the length
  that h has there.
- Images are weighted (`sample_weights.py`): by default every class of every domain counts like the
  16 shots of the paper. `weighting=count` is the original.
- The base domain is solved at once in double precision; the recursion over thousands of batches of
  the original would drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..text_classifier import class_embeddings, templates_option
from .sample_weights import sample_weights
from .zero_shot_fusion import mixed

_CHUNK = 4096  # images projected at once: the projections of a large domain do not fit in memory
_BATCH = 128  # images per step of the recursion
_PUBLISHED_SIZE = 15_000


@dataclass(frozen=True)
class Config:
    """Options of rail."""

    projection_size: int = option(
        2000, "width M of the random projection; 0 for the features themselves", minimum=0
    )
    ridge: float = option(0.1, "strength of the ridge", minimum=1e-10)
    fusion: float = option(
        0.8, "share of the regression; the rest is zero-shot", minimum=0, maximum=1
    )
    weighting: Literal["cell", "domain", "count"] = option(
        "cell", "what counts the same: a class of a domain, a domain, or an image"
    )
    templates: tuple[str, ...] = templates_option()


class RAIL(Method):
    """Recursive ridge regression beside zero-shot CLIP."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, dim = context.config, context.backbone.embed_dim
        self.text = class_embeddings(context, config.templates).double()
        self.projection: torch.Tensor | None = None
        size = config.projection_size or dim
        if config.projection_size:
            noise = torch.rand(dim, size, generator=context.generator("projection")).double()
            uniform = (2 * noise - 1) / dim**0.5
            self.projection = uniform.to(context.device) * (_PUBLISHED_SIZE / size) ** 0.5
        self.inverse = torch.eye(size).to(self.text) / config.ridge
        self.weights = self.text.new_zeros(size, len(self.text))

    def learn(self, domain: TrainDomain) -> None:
        """Solve the base domain at once; a later one is added by the recursion."""
        z, labels = domain.features().double(), domain.labels
        omega = sample_weights(labels, len(self.text), self.context.config.weighting)
        targets = F.one_hot(labels, len(self.text)).double()
        if domain.index == 0:
            self.inverse, self.weights = self._solve(z, targets, omega)
            return
        for part in torch.arange(len(z), device=z.device).split(_BATCH):
            rows = self._project(z[part])
            self.inverse, self.weights = absorb(
                self.inverse, self.weights, rows, targets[part], omega[part]
            )

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest mixed score."""
        z, config = batch.features.double(), self.context.config
        scores = self._project(z) @ self.weights
        scale = self.context.backbone.logit_scale
        return mixed(scores, z, self.text, scale, config.fusion).argmax(1)

    def state_dict(self) -> State:
        """R and W."""
        return {"inverse": self.inverse, "weights": self.weights}

    def load_state_dict(self, state: State) -> None:
        """Load copies of R and W, which lie in memory as they did when they were computed.

        The last bits of a product depend on that, and the recursion continues from them.
        """
        self.inverse, self.weights = state["inverse"].clone(), state["weights"].clone()

    def _project(self, z: torch.Tensor) -> torch.Tensor:
        return z if self.projection is None else (z @ self.projection).relu()

    def _solve(
        self, z: torch.Tensor, targets: torch.Tensor, omega: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """R and W of one domain."""
        size = len(self.weights)
        gram = self.context.config.ridge * torch.eye(size).to(z)
        sums = torch.zeros_like(self.weights)
        for part in torch.arange(len(z), device=z.device).split(_CHUNK):
            h = self._project(z[part])
            weighted = omega[part, None] * h
            gram += weighted.T @ h
            sums += weighted.T @ targets[part]
        factor = torch.linalg.cholesky(gram)
        inverse, weights = torch.cholesky_inverse(factor), torch.cholesky_solve(sums, factor)
        return inverse.contiguous(), weights.contiguous()


def absorb(
    inverse: torch.Tensor,
    weights: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    omega: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """R and W after a batch of rows h (b, M) with targets (b, C) and weights (b,)."""
    root = omega.sqrt()[:, None]
    h, y = root * rows, root * targets
    carried = inverse @ h.T
    inner = torch.eye(len(h)).to(h) + h @ carried
    inverse = inverse - carried @ torch.linalg.solve(inner, carried.T)
    return inverse, weights + inverse @ h.T @ (y - h @ weights)
