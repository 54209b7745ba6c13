"""FSHIL-lite: prototypes that grow, and experts for domains that look new.

Paper: FSHIL, CVPR 2026: a self-expanding prototype classifier (SEPC) on a tower with a mixture of
experts that start from a meta-learned template (CME-MoE). There is no public code, and what follows
rests on its abstract and a public reading note. Hence the name: this is not FSHIL, and its numbers
are not those of FSHIL.

Known: the rule of prototypes (`growing_prototypes.py`); experts beside MLPs, detectors with
z-scores, reuse of experts below a threshold and a new one above (`shift_experts.py`); a template
that is meta-learned in the base domain; cross-entropy and a distillation of prototypes, both with
weight 1. Guessed, because it is not public:

- rank 16 in the last four blocks; an expert is new where the mean z of a domain is above 2 under
  every detector of the block;
- the template by Reptile (Nichol et al., 2018), a first-order way to meta-learn: episodes of a few
  steps on the base domain under one random change of colours each, and the template moves half the
  way to where an episode ends. It also is the base domain's own expert;
- a new expert is a copy of the template and trains by

      cross-entropy( 16 cos(f, p), y ) + KL( before || now ),

  where p are the domain's class means before training, with those of earlier domains as rows of
  wrong classes, and the divergence is that of softmax(16 cos) to earlier prototypes, on the images
  of the domain;
- a class gets a prototype if its accuracy falls by a tenth, or below one half.

Features are unit embeddings in the joint space. With `experts=false` they are CLIP's own, and
nothing is trained: prototypes that grow are then all there is. The original has a ViT of ImageNet.
With one shot a prototype is the feature of a single image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, encode_image

from ..domain_prototypes import class_sums, own_similarity, similarity
from ..frozen.growing_prototypes import accuracy_left_out, needs_more, per_class
from ..plain_views import plain_views
from ..prompts.prompt_keys import require_blocks
from .distillation import distillation
from .shift_experts import (
    DETECTOR,
    EXPERT,
    expert,
    expert_branch,
    fit_detector,
    watching,
    z_scores,
)
from .trained_additions import AdditionConfig, TrainedAdditions


@dataclass(frozen=True)
class Config(AdditionConfig):
    """Options of fshil-lite."""

    experts: bool = option(True, "train experts; else prototypes of frozen features are all")
    expert_blocks: int = option(4, "last blocks, which get experts", minimum=1)
    rank: int = option(16, "inner width of experts and detectors", minimum=1)
    shift_limit: float = option(2.0, "mean z-score of a domain above which an expert is new")
    inner_steps: int = option(5, "steps of an episode of meta-learning", minimum=1)
    outer_rate: float = option(
        0.5, "how far the template goes to where an episode ends", minimum=0, maximum=1
    )
    distillation: float = option(1.0, "weight of the distillation of prototypes", minimum=0)
    scale: float = option(16.0, "factor on cosines in training", minimum=0)
    drop: float = option(
        0.1, "share of its usual accuracy that a class may lose without a new prototype",
        minimum=0, maximum=1,
    )  # fmt: skip
    least_accuracy: float = option(
        0.5, "accuracy below which a class gets a new prototype in any case", minimum=0, maximum=1
    )


class FSHILLite(TrainedAdditions):
    """Growing prototypes on a tower with experts."""

    Config: ClassVar[type] = Config
    inert: ClassVar[Mapping[str, str]] = {
        "least_accuracy": "in a small slice classes are usually right, so that drop decides"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, width = context.config, self.shape.width
        self.add(
            {
                "prototypes": torch.zeros(0, self.classes, context.backbone.embed_dim),
                "accuracies": torch.zeros(self.classes),
                "judged": torch.zeros(self.classes),
            }
        )
        if config.experts:
            require_blocks(self.shape, config.expert_blocks, "expert_blocks")
            start = context.generator("template")
            shape = (config.expert_blocks, config.rank, width)
            down = torch.empty(shape).uniform_(-(width**-0.5), width**-0.5, generator=start)
            self.add({"down": down, "up": torch.zeros_like(down.mT)}, "template.")

    def learn(self, domain: TrainDomain) -> None:
        """Train experts if the domain looks new, then add the prototypes that it needs."""
        self._trained = 0
        if self.context.config.experts:
            if domain.index == 0:
                self.learn_template(domain)
            self.learn_experts(domain)
        self.grow(domain)

    # --- prototypes ---

    def grow(self, domain: TrainDomain) -> None:
        """Add the prototypes that classes need, and note how accurate they are then."""
        config, labels = self.context.config, domain.labels
        features, earlier = self.features_of(domain), self.weights["prototypes"]
        sums = class_sums(features, labels, self.classes)
        if len(earlier):
            right = similarity(features, earlier).argmax(1) == labels
            accuracy = per_class(right, labels, self.classes)
            usual = self.weights["accuracies"] / self.weights["judged"].clamp(min=1)
            sums[~needs_more(accuracy, usual, config.drop, config.least_accuracy)] = 0
        self.weights["accuracies"] += accuracy_left_out(features, labels, earlier, sums)
        self.weights["judged"] += labels.bincount(minlength=self.classes) > 0
        self.weights["prototypes"] = torch.cat([earlier, sums[None]])

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the most similar prototype."""
        return similarity(self.features(batch), self.weights["prototypes"]).argmax(1)

    def features(self, batch: Batch) -> torch.Tensor:
        """Unit embeddings, (n, d)."""
        if not self.context.config.experts:
            return batch.features
        return self.context.backbone.embed_with(self.encode, batch.images)

    def features_of(self, domain: TrainDomain) -> torch.Tensor:
        """Those of the plain views of a domain."""
        frozen = domain.features()
        if not self.context.config.experts:
            return frozen
        views = plain_views(domain)
        return torch.cat([self.features(Batch(images, frozen[part])) for part, images in views])

    def embed(self, batch: Batch) -> torch.Tensor:
        """Unit embeddings."""
        return self.features(batch)

    # --- experts ---

    def learn_template(self, domain: TrainDomain) -> None:
        """Meta-learn the template: short episodes under random changes of colours."""
        config, styles = self.context.config, self.context.generator("styles")
        names = [f"template.{part}" for part in EXPERT]
        rows = class_sums(domain.features(), domain.labels, self.classes)
        steps = config.steps_for(domain)
        for step, batch in enumerate(self.batches(domain)):
            if step % config.inner_steps == 0:
                start = {name: self.weights[name].clone() for name in names}
                trained = [self.weights[name].requires_grad_() for name in names]
                optimizer, style = (
                    torch.optim.Adam(trained, lr=config.lr, fused=self.context.fused),
                    draw_style(styles),
                )
            with self.context.backbone.autocast():
                images = restyled(batch.images, style)
                raw = encode_image(self.visual, images, self.plain_adapters(), lean=True)
            cosines = similarity(raw.float(), rows[None])
            optimizer.zero_grad()
            F.cross_entropy(config.scale * cosines.float(), batch.labels).backward()
            optimizer.step()
            if (step + 1) % config.inner_steps == 0 or step + 1 == steps:
                for name in names:
                    end = self.weights[name].detach()
                    self.weights[name] = torch.lerp(start[name], end, config.outer_rate)
        self._trained = sum(self.weights[name].numel() for name in names)

    def learn_experts(self, domain: TrainDomain) -> None:
        """Fit detectors to the domain; where it looks new, train a copy of the template."""
        config, t = self.context.config, domain.index
        before = self.adapters() if t else []
        means = self.mean_tokens(domain, before)
        new = self.looks_new(means)
        fitted = [fit_detector(each, config.rank) for each in means]
        own = {part: torch.stack([each[part] for each in fitted]) for part in DETECTOR}
        own |= {part: self.weights[f"template.{part}"].clone() for part in EXPERT}
        for part in own:
            own[part][~new] = 0
        self.add(own | {"new": new}, f"domains.{t}.")
        if t and bool(new.any()):
            self.train_experts(domain, before)

    def train_experts(self, domain: TrainDomain, before: list[BlockAdapter]) -> None:
        """Train the new experts of a later domain."""
        config, t = self.context.config, domain.index
        earlier = self.weights["prototypes"]
        rows = class_sums(self.features_of(domain), domain.labels, self.classes)

        def loss(batch: TrainBatch) -> torch.Tensor:
            with self.context.backbone.autocast():
                features = encode_image(
                    self.visual, batch.images, self.adapters(), lean=True
                ).float()
                with torch.no_grad():
                    known = encode_image(self.visual, batch.images, before, lean=True).float()
            cosines = own_similarity(features, batch.labels, rows, earlier).float()
            loss = F.cross_entropy(config.scale * cosines, batch.labels)
            now, old = (config.scale * similarity(f, earlier).float() for f in (features, known))
            return loss + config.distillation * distillation(now, old)

        self.train(domain, [f"domains.{t}.{part}" for part in EXPERT], loss)

    @torch.no_grad()
    def looks_new(self, means: list[torch.Tensor]) -> torch.Tensor:
        """In which blocks no detector knows a domain with these mean tokens, (blocks,)."""
        found = []
        for block, each in enumerate(means):
            detectors = self.detectors(block)
            scores = z_scores(each, detectors).mean(0) if detectors else torch.tensor([torch.inf])
            found.append(bool(scores.min() > self.context.config.shift_limit))
        return torch.tensor(found, device=self.context.device)

    @torch.no_grad()
    def mean_tokens(self, domain: TrainDomain, adapters: list[BlockAdapter]) -> list[torch.Tensor]:
        """The mean tokens that enter the MLPs of the last blocks, (n, width) for each."""
        blocks = self.context.config.expert_blocks
        adapters = adapters or [BlockAdapter()] * self.shape.blocks
        seen: list[list[torch.Tensor]] = [[] for _ in range(blocks)]
        branches = [
            BlockAdapter(mlp_branch=watching(each.mlp_branch or torch.zeros_like, notes))
            for each, notes in zip(adapters[-blocks:], seen, strict=True)
        ]
        watched = [*adapters[:-blocks], *branches]
        for _, images in plain_views(domain):
            with self.context.backbone.autocast():
                encode_image(self.visual, images, watched)
        return [torch.cat(notes) for notes in seen]

    def detectors(self, block: int) -> list[State]:
        """The detectors of a block."""
        return self._of_block(block, DETECTOR)

    def adapters(self) -> list[BlockAdapter]:
        """The tower with all experts."""
        blocks = self.context.config.expert_blocks
        plain = [BlockAdapter()] * (self.shape.blocks - blocks)
        return plain + [
            BlockAdapter(mlp_branch=expert_branch(self._of_block(b, EXPERT), self.detectors(b)))
            for b in range(blocks)
        ]

    def plain_adapters(self) -> list[BlockAdapter]:
        """The tower with the template, which needs no detector."""
        blocks = self.context.config.expert_blocks
        down, up = (self.weights[f"template.{part}"] for part in EXPERT)
        plain = [BlockAdapter()] * (self.shape.blocks - blocks)
        return plain + [
            BlockAdapter(mlp_branch=partial(expert, {"down": d, "up": u}))
            for d, u in zip(down, up, strict=True)
        ]

    def encode(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings under all experts."""
        return encode_image(self.visual, images, self.adapters(), lean=True)

    def diagnostics(self) -> dict[str, Any]:
        """How many prototypes and experts each domain has added."""
        prototypes = self.weights["prototypes"].any(-1).sum(1).tolist()
        return {
            "prototypes": prototypes,
            "experts": [int(new.sum()) for new in self.of_domains("new")],
        }

    def _of_block(self, block: int, parts: tuple[str, ...]) -> list[State]:
        """Some parts of all experts that a block has."""
        sets = zip(*(self.of_domains(part) for part in parts), strict=True)
        return [
            {part: rows[block] for part, rows in zip(parts, each, strict=True)}
            for new, each in zip(self.of_domains("new"), sets, strict=True)
            if new[block]
        ]


def draw_style(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """A change of colours: gain and shift of each channel, and how grey it gets."""
    return {
        "gain": 0.5 + torch.rand(1, 3, 1, 1, generator=generator),
        "shift": 0.5 * torch.randn(1, 3, 1, 1, generator=generator),
        "grey": torch.rand((), generator=generator),
    }


def restyled(images: torch.Tensor, style: dict[str, torch.Tensor]) -> torch.Tensor:
    """Normalised images (n, 3, h, w) in other colours."""
    gain, shift, grey = (style[name].to(images) for name in ("gain", "shift", "grey"))
    return torch.lerp(images, images.mean(1, keepdim=True), grey) * gain + shift
