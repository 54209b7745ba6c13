"""Streaming linear discriminant analysis: class means and one covariance shared by all classes.

Paper: Hayes and Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis,
2020. With the class means mu_c and the covariance S of features around the mean of their class

    L = ((1 - eps) S + eps I)^-1,      prediction = argmax_c z . L mu_c - 1/2 mu_c . L mu_c

S starts as the OAS estimate (Chen et al., 2010) on the base domain: the sample covariance, shrunk
towards a multiple of the identity by an amount that follows from its own trace and norm.

Different from the original: a whole domain is merged at once by the exact rule for combining
scatters, where the original adds one sample after the other by a rule whose result depends on their
order. Without shrinkage the outcome is therefore LDA on all images seen. With `balanced` an image
weighs 1 / (number of images of its domain), so that the base domain does not drown the others.

With `fuse` below 1 (the method `slda-text`) the posterior of these Gaussians, under equal priors,
is mixed with zero-shot CLIP: (1 - fuse) softmax(s z . w_c) + fuse softmax(the scores above). This
is what few shots leave of ENGINE (Zhou et al., 2025), without its adapters and its descriptions
written by a language model: its test-time mixture, with its share of 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..text_classifier import class_embeddings, require_text, templates_option
from .zero_shot_fusion import mixed


@dataclass(frozen=True)
class Config:
    """Options of slda."""

    shrinkage: Literal["oas", "none"] = option("oas", "how to shrink the base domain's covariance")
    eps: float = option(
        1e-4, "weight of the identity when inverting the covariance", minimum=1e-10, maximum=1.0
    )
    balanced: bool = option(False, "let every domain weigh the same instead of every image")
    fuse: float = option(1.0, "share of LDA; the rest is zero-shot", minimum=0, maximum=1)
    templates: tuple[str, ...] = templates_option()


class StreamingLDA(Method):
    """Gaussian classes with a common covariance."""

    Config = Config
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {
        "templates": "other words move a text little, and a small slice may have no close decision"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        classes, size = len(context.class_names), context.backbone.embed_dim
        self.counts = torch.zeros(classes, dtype=torch.float64, device=context.device)
        self.means = self.counts.new_zeros(classes, size)
        self.scatter = self.counts.new_zeros(size, size)
        self.text: torch.Tensor | None = None
        if context.config.fuse < 1:
            require_text(context, f"fuse = {context.config.fuse}", "fuse=1")
            self.text = class_embeddings(context, context.config.templates).double()

    def learn(self, domain: TrainDomain) -> None:
        """Merge the domain's means and scatter into those of the domains before."""
        config = self.context.config
        z, labels = domain.features().double(), domain.labels
        members = F.one_hot(labels, len(self.counts)).double()
        counts = members.sum(0)
        means = (members.T @ z) / counts.clamp(min=1)[:, None]
        centred = z - means[labels]
        covariance = centred.T @ centred / len(z)
        if domain.index == 0 and config.shrinkage == "oas":
            covariance = oas(covariance, len(z))
        weight = 1 / len(z) if config.balanced else 1.0
        self._merge(weight * counts, means, weight * len(z) * covariance)
        self._solve()

    def predict(self, batch: Batch) -> torch.Tensor:
        """The most likely class."""
        z = batch.features.double()
        scores = z @ self.weights + self.bias
        if self.text is not None:
            scale, share = self.context.backbone.logit_scale, self.context.config.fuse
            scores = mixed(scores.softmax(1), z, self.text, scale, share)
        return scores.argmax(1)

    def state_dict(self) -> State:
        """Weights and means of the classes, and the scatter around them."""
        return {"counts": self.counts, "means": self.means, "scatter": self.scatter}

    def load_state_dict(self, state: State) -> None:
        """Load the statistics."""
        self.counts, self.means, self.scatter = state["counts"], state["means"], state["scatter"]
        self._solve()

    def _merge(self, counts: torch.Tensor, means: torch.Tensor, scatter: torch.Tensor) -> None:
        """Combine two weighted samples: the means move, and their distance adds to the scatter."""
        total = self.counts + counts
        share = counts / total.clamp(min=torch.finfo(total.dtype).tiny)
        shift = means - self.means
        between = (self.counts * share)[:, None] * shift
        self.scatter = self.scatter + scatter + between.T @ shift
        self.means = self.means + share[:, None] * shift
        self.counts = total

    def _solve(self) -> None:
        eps = self.context.config.eps
        covariance = self.scatter / self.counts.sum()
        identity = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
        self.weights = torch.linalg.solve((1 - eps) * covariance + eps * identity, self.means.T)
        self.bias = -0.5 * (self.means.T * self.weights).sum(0)


def oas(covariance: torch.Tensor, samples: int) -> torch.Tensor:
    """The oracle-approximating shrinkage of a sample covariance."""
    size = len(covariance)
    spread = covariance.trace() / size
    power = covariance.square().mean()
    excess = (samples + 1) * (power - spread**2 / size)
    amount = ((power + spread**2) / excess).clamp(max=1) if excess > 0 else excess.new_ones(())
    identity = torch.eye(size, dtype=covariance.dtype, device=covariance.device)
    return (1 - amount) * covariance + amount * spread * identity
