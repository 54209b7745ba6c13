"""RAIL in its dual form: kernel ridge regression on features that are kept.

Paper: Xu et al., Advancing Cross-domain Discriminability in Continual Learning of Vision-Language
Models, 2024. With the kernel k(x, y) = exp(-gamma |x - y|^2), all features X kept so far, one-hot
labels Y and the weights omega of the images on the diagonal of Omega

    alpha = (k(X, X) + lam Omega^-1)^-1 Y
    prediction = argmax_c of (1 - b) softmax(s z . w_c) + b k(z, X) alpha

This is a memory of samples, and boards mark it. With `kernel=linear` it is `rail` with
`projection_size=0`.

Different from the original: as in `rail.py`. Of the base domain at most 16 images per class are
kept, drawn with the run's seed, since the kernel over a whole base domain does not fit in memory.
Like the released code, the system is solved again after each domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..text_classifier import class_embeddings, templates_option
from .sample_weights import sample_weights
from .zero_shot_fusion import mixed


@dataclass(frozen=True)
class Config:
    """Options of rail-dual."""

    kernel: Literal["gaussian", "linear"] = option("gaussian", "similarity of two features")
    gamma: float = option(0.1, "sharpness of the Gaussian kernel", minimum=0)
    ridge: float = option(0.001, "strength of the ridge", minimum=1e-10)
    base_images: int = option(16, "at most so many images per class of the base domain", minimum=1)
    fusion: float = option(
        0.8, "share of the regression; the rest is zero-shot", minimum=0, maximum=1
    )
    weighting: Literal["cell", "domain", "count"] = option(
        "cell", "what counts the same: a class of a domain, a domain, or an image"
    )
    templates: tuple[str, ...] = templates_option()


class DualRAIL(Method):
    """Kernel ridge regression beside zero-shot CLIP."""

    Config = Config
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {"base_images": "a small slice has fewer images in a class"}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = class_embeddings(context, context.config.templates).double()
        self.kept = self.text.new_zeros(0, self.text.shape[1])
        self.labels = torch.zeros(0, dtype=torch.long, device=context.device)
        self.omega = self.text.new_zeros(0)
        self.alpha = self.text.new_zeros(0, len(self.text))

    def learn(self, domain: TrainDomain) -> None:
        """Keep the domain's features, or some of the base domain's, and solve again."""
        chosen, classes = self._chosen(domain), len(self.text)
        labels = domain.labels[chosen]
        omega = sample_weights(labels, classes, self.context.config.weighting)
        self.kept = torch.cat([self.kept, domain.features()[chosen].double()])
        self.labels = torch.cat([self.labels, labels])
        self.omega = torch.cat([self.omega, omega])
        self._solve()

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest mixed score."""
        z, config = batch.features.double(), self.context.config
        scores = self._kernel(z, self.kept) @ self.alpha
        scale = self.context.backbone.logit_scale
        return mixed(scores, z, self.text, scale, config.fusion).argmax(1)

    def state_dict(self) -> State:
        """Features, labels and weights."""
        return {"kept": self.kept, "labels": self.labels, "omega": self.omega}

    def load_state_dict(self, state: State) -> None:
        """Load them, and solve."""
        self.kept, self.labels, self.omega = state["kept"], state["labels"], state["omega"]
        self._solve()

    def _chosen(self, domain: TrainDomain) -> torch.Tensor:
        """Positions of the images that are kept: of the base domain only some."""
        if domain.index:
            return torch.arange(len(domain), device=self.context.device)
        order = torch.randperm(len(domain), generator=self.context.generator("kept"))
        shuffled, most = domain.labels.cpu()[order], self.context.config.base_images
        few = [order[shuffled == c][:most] for c in range(len(self.text))]
        return torch.cat(few).sort().values.to(self.context.device)

    def _kernel(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        products = one @ other.T
        if self.context.config.kernel == "linear":
            return products
        lengths = one.square().sum(1)[:, None] + other.square().sum(1)
        return (-self.context.config.gamma * (lengths - 2 * products)).exp()

    def _solve(self) -> None:
        system = self._kernel(self.kept, self.kept)
        system = system + torch.diag(self.context.config.ridge / self.omega)
        targets = F.one_hot(self.labels, len(self.text)).double()
        self.alpha = torch.linalg.solve(system, targets)
