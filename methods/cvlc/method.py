"""CVLC, the whole method: how its mechanisms work together over a stream of domains.

Paper: Continual Vision-Language Consolidation for few-shot domain-incremental learning. Learning
domain t takes these steps:

    1. additions, calibration and temporary classifier of the domain are made: from the base
       domain's (additions, classifier) and the previous domain's (calibration)
    2. base: Gaussians of the classes for latent space reservation
       later: the domain's prototypes before training
    3. training by cross-entropy against prototypes from images, base domain and text
    4. prototypes after training are stored; those of earlier domains follow the drift
    5. statistics of frozen embeddings are stored, to recognise domains by

A test image is assigned to the domain whose Gaussian is nearest, and classified with the additions,
calibration and prototypes of that domain.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from fsdil_bench import Batch, Context, RouterMethod, State, TrainBatch, TrainDomain
from fsdil_bench.adapters import BlockAdapter, encode_image, encode_rest, fold, image_tokens

from . import domain_id
from .calibration import INITIAL, embed_frozen, embed_vision
from .config import PRESETS, Config
from .correction import correct
from .domain_id import DomainStatistics
from .power_norm import unit
from .reservation import Originals, class_gaussians, prepare, reserve
from .sentences import Sentences
from .visual_prototypes import class_means, fuse, logits, passes, stored_prototypes
from .weights import Weights


class Views(NamedTuple):
    """Embeddings of a domain's views and their weights: a plain view is encoded only once."""

    labels: torch.Tensor
    weights: torch.Tensor
    adapted: torch.Tensor  # by the domain's encoder, calibrated
    frozen: torch.Tensor  # to recognise domains by


class CVLC(RouterMethod):
    """Continual vision-language consolidation."""

    Config = Config
    presets = PRESETS
    inputs = frozenset({"images", "features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.config: Config = context.config.settled()
        self.visual: Any = context.backbone.model.visual
        self.classes = len(context.class_names)
        self.weights = Weights(context, self.config)
        # Up to here an image need not know its domain. The last block is read at one token only.
        self._branching = min(self.config.shared_blocks, self.weights.shapes["vision"].blocks - 1)
        self.sentences = Sentences(context, self.config) if self.config.text else None
        shape = (0, self.classes, context.backbone.embed_dim)
        self.prototypes = torch.zeros(shape, device=context.device)
        self.statistics: DomainStatistics | None = None
        self._trained = 0
        # What follows from the state, computed when first needed.
        self._metric: domain_id.Metric | None = None
        self._texts: dict[int, torch.Tensor | None] = {}
        self._shared: list[BlockAdapter] = []
        self._classifiers: dict[int, tuple[list[BlockAdapter], torch.Tensor]] = {}

    def learn(self, domain: TrainDomain) -> None:
        """The five steps above."""
        t = domain.index
        self._forget_derived()
        self.weights.add_domain()
        if t == 0:
            self._train(domain, self._originals(domain))
        else:
            before = self._stored(t, self._views(domain, statistics=False))
            self._train(domain, None)
        self._forget_derived()
        views = self._views(domain)
        after = self._stored(t, views)
        if t:
            self.prototypes = correct(self.prototypes, before, after, self.config.gamma)
        self.prototypes = torch.cat([self.prototypes, after[None]])
        self.statistics = domain_id.add_domain(
            self.statistics,
            views.frozen,
            views.labels,
            self.classes,
            self.config.domain_rule or "gaussian",
            views.weights,
        )

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """The domain with the nearest statistics of frozen embeddings."""
        assert self.statistics is not None
        if self._metric is None:
            rule = self.config.domain_rule or "gaussian"
            self._metric = domain_id.make_metric(self.statistics, rule)
        return domain_id.identify(batch.features, self._metric)

    def shared_part(self, batch: Batch) -> torch.Tensor | None:
        """The tokens after the blocks that all domains share."""
        return self._tokens(batch.images) if self._branching else None

    @torch.no_grad()
    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """Classes, domain by domain."""
        tokens = self._tokens(batch.images) if batch.shared is None else batch.shared
        classes = torch.zeros_like(domains)
        for t in domains.unique().tolist():
            rows = domains == t
            z = self._embed(tokens[rows], t)
            classes[rows] = logits(z, self._ready(t)[1], 0.0).argmax(1)
        return classes

    def embed(self, batch: Batch) -> torch.Tensor:
        """Calibrated unit embeddings under the predicted domains."""
        domains = self.predict_domain(batch)
        tokens = self._tokens(batch.images)
        embeddings = torch.zeros_like(batch.features)
        for t in domains.unique().tolist():
            rows = domains == t
            embeddings[rows] = unit(self._embed(tokens[rows], t))
        return embeddings

    def state_dict(self) -> State:
        """Trained weights, stored prototypes and domain statistics."""
        assert self.statistics is not None
        weights = {f"weights.{name}": value for name, value in self.weights.state_dict().items()}
        return weights | {
            "prototypes": self.prototypes,
            "domain_means": self.statistics.means,
            "domain_covariances": self.statistics.covariances,
        }

    def load_state_dict(self, state: State) -> None:
        """Add as many domains as there are, then load their tensors."""
        self._forget_derived()
        self.prototypes = state["prototypes"]
        self.statistics = DomainStatistics(state["domain_means"], state["domain_covariances"])
        while len(self.weights.domains) < len(self.prototypes):
            self.weights.add_domain()
        own = {k.removeprefix("weights."): v for k, v in state.items() if k.startswith("weights.")}
        self.weights.load_state_dict(own)

    def trained_parameters(self) -> int:
        """What was trained in the last domain."""
        return self._trained

    def diagnostics(self) -> dict[str, Any]:
        """The learned coefficients of the last domain."""
        calibration = self.weights.domain(len(self.weights.domains) - 1).calibration
        return {name: round(getattr(calibration, name).item(), 5) for name in INITIAL}

    # Training

    def _train(self, domain: TrainDomain, originals: Originals | None) -> None:
        t, config = domain.index, self.config
        weights, own = self.weights, self.weights.domain(domain.index)
        classifier, log_scale = self._temporary_classifier(t)
        shared = [weights.shared_vision, weights.shared_text]
        additions = [p for part in (*shared, own.vision, own.text) for p in part.parameters()]
        groups: list[dict[str, Any]] = [
            {"params": own.calibration.weights()},
            {"params": own.calibration.powers(), "lr": config.power_lr},
            {"params": additions},
            {"params": [own.calibration.shift]},
        ]
        if self.sentences is not None:
            groups.append({"params": [weights.text_shift]})
        if classifier.requires_grad:
            groups.append({"params": [classifier], "weight_decay": config.weight_decay})
            groups.append({"params": [log_scale]})
        self._trained = sum(p.numel() for group in groups for p in group["params"])
        optimizer = torch.optim.AdamW(
            groups, lr=config.lr, weight_decay=0.0, fused=self.context.fused
        )
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)
        losses: deque[torch.Tensor] = deque(maxlen=config.window)
        generator = self.context.generator("reservation")
        for _ in range(config.base_epochs if t == 0 else config.epochs):
            for batch in domain.batches(config.batch_size, drop_last=self._drops_last(t)):
                checkpoint = self._checkpoint(len(batch.images))
                z = self._embed_training(batch.images, t, checkpoint)
                targets = F.one_hot(batch.labels, self.classes).to(z.dtype)
                if originals is not None:
                    pseudo, soft = reserve(
                        originals,
                        generator,
                        candidates=config.candidates,
                        distinct_candidates=config.distinct_candidates,
                        pseudo_classes=config.pseudo_classes,
                        pseudo_samples=config.pseudo_samples,
                        norm=config.similarity or "l2",
                    )
                    z, targets = torch.cat([z, pseudo]), torch.cat([targets, soft])
                prototypes = self._fused(t, classifier, self._text(t, checkpoint))
                loss = F.cross_entropy(logits(z, prototypes, log_scale), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())  # to read it here would make a GPU wait at every step
            plateau.step(torch.stack(list(losses)).double().mean().item())

    def _checkpoint(self, images: int) -> bool:
        """Whether a step keeps little and computes it again."""
        texts = 0 if self.sentences is None else self.sentences.trained_tokens
        return self.context.backbone.checkpoint(images=images, text_tokens=texts)

    def _temporary_classifier(self, t: int) -> tuple[nn.Parameter, nn.Parameter]:
        """W and its log-scale: the base domain's own, or copies of them for a later domain."""
        first = (self.weights.classifier, self.weights.log_scale)
        if t == 0:
            return first
        trained = not (self.config.frozen_classifier and t >= 2)
        copies = [nn.Parameter(p.detach().clone(), requires_grad=trained) for p in first]
        return copies[0], copies[1]

    def _originals(self, domain: TrainDomain) -> Originals | None:
        if not self.config.reservation:
            return None
        features, labels = domain.features(), domain.labels
        rest = len(features) % self.config.batch_size
        if self._drops_last(domain.index) and rest < len(features):
            order = torch.randperm(len(features), generator=self.context.generator("left out"))
            rows = order[rest:].to(features.device)
            features, labels = features[rows], labels[rows]
        z = embed_frozen(features, INITIAL["vision_power"])
        return prepare(class_gaussians(z, labels, self.classes))

    def _drops_last(self, t: int) -> bool:
        """Whether the last, incomplete batch of base images is left out everywhere."""
        return bool(self.config.drop_last) and t == 0

    # Embeddings and prototypes

    def _embed_training(self, images: torch.Tensor, t: int, checkpoint: bool) -> torch.Tensor:
        adapters = self.weights.vision_adapters(t)
        with self.context.backbone.autocast():
            raw = encode_image(self.visual, images, adapters, checkpoint=checkpoint, lean=True)
        calibration = self.weights.domain(t).calibration
        return embed_vision(raw.float(), calibration, self.weights.base_shift(t))

    def _tokens(self, images: torch.Tensor) -> torch.Tensor:
        """The tokens of test images after the blocks that all domains share."""
        if not self._shared:
            first = fold(self.visual, self.weights.vision_adapters(0))
            self._shared = first[: self._branching]

        def tower(part: torch.Tensor) -> torch.Tensor:
            return image_tokens(self.visual, part, self._shared, depth=self._branching).tokens

        return self.context.backbone.run_with(tower, images)

    def _embed(self, tokens: torch.Tensor, t: int) -> torch.Tensor:
        """Calibrated embeddings in domain t, from there on."""
        tower = partial(encode_rest, self.visual, adapters=self._ready(t)[0])
        raw = self.context.backbone.embed_with(tower, tokens)
        return embed_vision(raw, self.weights.domain(t).calibration, self.weights.base_shift(t))

    def _encode(self, images: torch.Tensor, adapters: list[BlockAdapter]) -> torch.Tensor:
        tower = partial(encode_image, self.visual, adapters=adapters, lean=True)
        return self.context.backbone.embed_with(tower, images)

    def _text(self, t: int, checkpoint: bool = False) -> torch.Tensor | None:
        if self.sentences is None:
            return None
        weights = self.weights
        return self.sentences.prototypes(
            weights.text_adapters(t),
            weights.domain(t).calibration,
            weights.text_shift,
            weights.base_shift(t),
            checkpoint=checkpoint,
        )

    @torch.no_grad()
    def _final_text(self, t: int) -> torch.Tensor | None:
        """Text prototypes of domain t while nothing is trained: computed once."""
        if t not in self._texts:
            self._texts[t] = self._text(t)
        return self._texts[t]

    def _fused(self, t: int, own: torch.Tensor, text: torch.Tensor | None) -> torch.Tensor:
        calibration = self.weights.domain(t).calibration
        base = self.prototypes[0] if t else None
        return fuse(own, text, calibration.current_share, calibration.visual_share, base)

    @torch.no_grad()
    def _stored(self, t: int, views: Views) -> torch.Tensor:
        """The domain's prototypes under the current weights."""
        means = class_means(views.adapted, views.labels, self.classes, views.weights)
        share = self.weights.domain(t).calibration.visual_share
        return stored_prototypes(means, self._final_text(t), share, self.config.fuse_text_at_store)

    @torch.no_grad()
    def _views(self, domain: TrainDomain, *, statistics: bool = True) -> Views:
        """Plain views of the domain and, in a few-shot domain, many augmented ones.

        Without `statistics` the frozen embeddings are left out.
        """
        t, size = domain.index, self.config.batch_size
        adapters = fold(self.visual, self.weights.vision_adapters(t))
        repeats = passes(max(1, len(domain) // self.classes), self.config.least_views) if t else 0
        drop = self._drops_last(t)
        features = domain.features() if statistics else None
        calibration, base_shift = self.weights.domain(t).calibration, self.weights.base_shift(t)
        parts = []

        def add(batch: TrainBatch, frozen: torch.Tensor | None, weight: int) -> None:
            raw = self._encode(batch.images, adapters)
            if features is None:
                frozen = raw[:, :0]
            elif frozen is None:
                mixed = self.config.domain_views == "mixed"
                frozen = raw if mixed else self.context.backbone.encode_image(batch.images)
            parts.append(
                Views(
                    batch.labels,
                    torch.full_like(raw[:, 0], weight),
                    embed_vision(raw, calibration, base_shift),
                    self._for_domains(frozen, t),
                )
            )

        for batch in domain.batches(size, augment=False, shuffle=drop, drop_last=drop):
            add(batch, None if features is None else features[batch.positions], max(1, repeats))
        for batch in domain.batches(size, augment=True, shuffle=False, epochs=repeats):
            add(batch, None, 1)
        return Views(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _for_domains(self, z: torch.Tensor, t: int) -> torch.Tensor:
        power = self.weights.domain(t).calibration.vision_power
        return embed_frozen(z, power if self.config.domain_power else None)

    def _forget_derived(self) -> None:
        self._metric, self._texts, self._shared, self._classifiers = None, {}, [], {}

    def _ready(self, t: int) -> tuple[list[BlockAdapter], torch.Tensor]:
        """Folded additions after the shared blocks, and final prototypes of domain t."""
        if t not in self._classifiers:
            adapters = fold(self.visual, self.weights.vision_adapters(t))[self._branching :]
            prototypes = self._fused(t, self.prototypes[t], self._final_text(t))
            self._classifiers[t] = (adapters, prototypes)
        return self._classifiers[t]
