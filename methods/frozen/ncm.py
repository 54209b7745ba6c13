"""Nearest class mean: one prototype per class from frozen features, nothing is trained.

Paper: Mensink et al., Distance-Based Image Classification: Generalizing to New Classes at
Near-Zero Cost, 2013. With unit image embeddings z, the mean mu_c of those of class c, the text
embedding w_c and n(.) scaling to unit length

    p_c = n( lam w_c + (1 - lam) n(mu_c) ),      prediction = argmax_c z . p_c

The mean can be taken in three ways. They differ in how much the few images of a later domain
weigh against the many images of the base domain:

    running      over all images so far: every image counts the same
    balanced     over the domains' means: every domain counts the same
    domain-max   not at all: every domain keeps its own prototypes, the most similar one decides

Different from the original: cosine instead of a learned distance, and the optional share of text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..text_classifier import class_embeddings, require_text, templates_option


@dataclass(frozen=True)
class Config:
    """Options of ncm."""

    mode: Literal["running", "balanced", "domain-max"] = option(
        "running", "mean over images, over domains, or prototypes for each domain"
    )
    text_mix: float = option(
        0.0, "share of the text embedding in a prototype", minimum=0.0, maximum=1.0
    )
    templates: tuple[str, ...] = templates_option()


class NearestClassMean(Method):
    """The class with the most similar prototype."""

    Config = Config
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {
        "templates": "other words move a text little, and a small slice may have no close decision"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.classes = len(context.class_names)
        # Sums instead of means: a prototype is their direction, so counts need not be kept.
        shape = (0, self.classes, context.backbone.embed_dim)
        self.sums = torch.zeros(shape, dtype=torch.float64, device=context.device)
        self.text: torch.Tensor | None = None
        if context.config.text_mix > 0:
            require_text(context, f"text_mix = {context.config.text_mix}", "text_mix=0")
            self.text = class_embeddings(context, context.config.templates).double()

    def learn(self, domain: TrainDomain) -> None:
        """Add the domain's features to the prototypes, or add prototypes of its own."""
        mode = self.context.config.mode
        members = F.one_hot(domain.labels, self.classes).double()
        sums = members.T @ domain.features().double()
        if mode == "balanced":
            sums /= members.sum(0).clamp(min=1)[:, None]
        if mode == "domain-max" or not len(self.sums):
            self.sums = torch.cat([self.sums, sums[None]])
        else:
            self.sums = self.sums + sums

    def prototypes(self) -> torch.Tensor:
        """Unit vectors, (1 or the number of domains, C, d)."""
        prototypes = F.normalize(self.sums, dim=-1)
        if self.text is not None:
            share = self.context.config.text_mix
            prototypes = F.normalize(share * self.text + (1 - share) * prototypes, dim=-1)
        return prototypes

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the most similar prototype."""
        similarity = torch.einsum("nd,tcd->ntc", batch.features.double(), self.prototypes())
        return similarity.amax(1).argmax(1)

    def state_dict(self) -> State:
        """The sums of features."""
        return {"sums": self.sums}

    def load_state_dict(self, state: State) -> None:
        """Load the sums."""
        self.sums = state["sums"]
