"""CVLC's prototypes from images and text with its initial calibration: nothing is trained.

What CVLC predicts before the first step of training, on embeddings of the frozen towers, as a
method of its own, so that a board shows what training adds. With PowerNorm's initial exponent 0.8,
all shares 0.5 and no shift (`calibration.py`), class means m_t of a domain and text prototypes mu

    e = pn(n(z)),   P_t = n( m_t + mu ),   prototypes of domain t: n( n(P_t + P_0) + mu )

and those of the base domain n(P_0 + mu). The domain of a test image is found as in CVLC
(`domain_id.py`), from the same views: of a few-shot domain many augmented ones.

Different from CVLC with `adapter=none` and no epochs: its shifts start with a small random
direction, and it corrects stored prototypes for a drift, which does not exist here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from fsdil_bench import Batch, Context, RouterMethod, State, TrainDomain, option

from ..embedded import on_embedded_worlds
from . import domain_id
from .calibration import INITIAL, embed_frozen
from .config import TEXTS
from .domain_id import DomainStatistics
from .frozen_texts import TextConfig, text_prototypes_of
from .visual_prototypes import class_means, fuse, logits, passes, stored_prototypes

#: As many as CVLC has.
_VIEWS = on_embedded_worlds(least_views=16)


@dataclass(frozen=True)
class FusedConfig(TextConfig):
    """Options of fused-prototypes."""

    visual_share: float = option(0.5, "share of images against text", minimum=0, maximum=1)
    current_share: float = option(
        0.5, "share of the domain against the base domain", minimum=0, maximum=1
    )
    fuse_text_at_store: bool = option(
        True, "mix text into stored prototypes; it then counts twice in predictions"
    )
    least_views: int = option(
        100, "views per class for the statistics of a few-shot domain", minimum=1
    )
    batch_size: int = option(64, "views encoded at once", minimum=1)
    domain_rule: Literal[
        "gaussian", "class-pooled", "authors", "gaussian-logdet", "gaussian-common"
    ] = option("gaussian", "distance to a domain")


class FusedPrototypes(RouterMethod):
    """Prototypes of every domain, and a router."""

    Config = FusedConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: texts | _VIEWS.get(name, {}) for name, texts in TEXTS.items()
    }
    inputs = frozenset({"features"})
    inert: ClassVar[Mapping[str, str]] = {"batch_size": "it only says how views are encoded"}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.power = INITIAL["vision_power"]
        self.text = text_prototypes_of(context, INITIAL["text_power"])
        self.prototypes = self.text.new_zeros(0, *self.text.shape)
        self.statistics: DomainStatistics | None = None
        self._metric: domain_id.Metric | None = None

    def learn(self, domain: TrainDomain) -> None:
        """Store the domain's prototypes, and what it is recognised by."""
        config, classes = self.context.config, len(self.text)
        z, labels, weights = self._views(domain)
        means = class_means(embed_frozen(z, self.power), labels, classes, weights)
        stored = stored_prototypes(means, self.text, config.visual_share, config.fuse_text_at_store)
        self.prototypes = torch.cat([self.prototypes, stored[None]])
        self.statistics = domain_id.add_domain(
            self.statistics, z, labels, classes, config.domain_rule, weights
        )
        self._metric = None

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """The domain with the nearest statistics."""
        assert self.statistics is not None
        if self._metric is None:
            rule = self.context.config.domain_rule
            self._metric = domain_id.make_metric(self.statistics, rule)
        return domain_id.identify(batch.features, self._metric)

    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """The class with the most similar prototype, domain by domain."""
        classes, z = torch.zeros_like(domains), embed_frozen(batch.features, self.power)
        for t in domains.unique().tolist():
            classes[domains == t] = logits(z[domains == t], self.classifier(t), 0.0).argmax(1)
        return classes

    def classifier(self, t: int) -> torch.Tensor:
        """The prototypes of domain t, fused with the base domain and text, (C, d)."""
        config, base = self.context.config, self.prototypes[0] if t else None
        own = self.prototypes[t]
        return fuse(own, self.text, config.current_share, config.visual_share, base)

    def state_dict(self) -> State:
        """Prototypes and domain statistics; nothing before the first domain."""
        if self.statistics is None:
            return {}
        return {
            "prototypes": self.prototypes,
            "domain_means": self.statistics.means,
            "domain_covariances": self.statistics.covariances,
        }

    def load_state_dict(self, state: State) -> None:
        """Load them."""
        self.prototypes = state["prototypes"]
        self.statistics = DomainStatistics(state["domain_means"], state["domain_covariances"])
        self._metric = None

    def _views(self, domain: TrainDomain) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Frozen features of plain and, in a few-shot domain, augmented views; labels; weights."""
        z, labels = domain.features(), domain.labels
        if not domain.index:
            return z, labels, torch.ones_like(z[:, 0])
        config, encode = self.context.config, self.context.backbone.encode_image
        repeats = passes(max(1, len(domain) // len(self.text)), config.least_views)
        views = [
            (encode(batch.images), batch.labels)
            for batch in domain.batches(config.batch_size, shuffle=False, epochs=repeats)
        ]
        weights = torch.ones(len(z) * (1 + repeats)).to(z)
        weights[: len(z)] = repeats  # a plain view is the same in every pass
        parts = [(z, labels), *views]
        return torch.cat([v for v, _ in parts]), torch.cat([y for _, y in parts]), weights
