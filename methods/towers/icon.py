"""ICON: adapters that all domains share, and more output nodes for classes that need them.

Paper: Park et al., Versatile Incremental Learning: Towards Class and Domain-Agnostic Incremental
Learning, ECCV 2024. Beside the attention of each of the first blocks is an adapter,

    x <- x + attention(x') + gain (U gelu(D x' + b) + c),      x' = LN_1(x), rank 5,

where U and c are zero at first.

- *Shifts.* A penalty keeps what a domain does to the adapters orthogonal to what others did
  (`shift_penalty.py`); it acts from the fourth domain on.
- *Nodes.* At the start of a later domain, a class whose accuracy there is at most

      max(0, tanh(10 (a - accuracy) / a)),      a = its mean accuracy in earlier domains,

  gets a new output node, a copy of its first one. While the domain is learned, the new node stands
  for the class; afterwards the largest of its nodes does.
- *Distillation.* KL( new nodes' softmax || softmax of the head before the domain ) on the current
  features, over the nodes that are not new, holds these.
- *Two speeds.* From the second domain on, a slow copy of the adapters follows as a moving average;
  the larger of the two probabilities of a class counts.

For the first part of a later domain only the head is trained (`head_only`, three of five passes).

Different from the original:
- Accuracies are those on training images. The original means to use test images of earlier tasks,
  which is not allowed here; as released it never records them, so that a class gets a node only
  if none of its images is right (`node_rule=coded`).
- From few images an accuracy says little: with fewer than `least_shots` of a class, no node.
- The moving average keeps 0.99 per step; with the published 0.9999 a hundred steps do not move it.
- `head=text`: the nodes are CLIP's frozen class names, and new ones are trained copies of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter

from ..embedded import LIMITS, on_embedded_worlds
from ..plain_views import plain_views
from ..prompts.prompt_keys import require_blocks
from .adapted_training import AdaptedConfig, AdaptedMethod
from .shift_penalty import shift_clusters, shift_penalty

ADAPTER = ("down", "down_bias", "up", "up_bias", "gain")
_SHARPNESS = 10.0  # of the threshold on accuracies


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of icon."""

    lr: float = option(0.0028125, "learning rate of Adam", minimum=0)
    batch_size: int = option(24, "images per step", minimum=1)
    blocks: int = option(5, "first blocks, which get an adapter", minimum=1)
    rank: int = option(5, "inner width of an adapter", minimum=1)
    shift_weight: float = option(
        0.01, "weight of the penalty on shifts like those of other domains", minimum=0
    )
    shift_cosine: bool = option(False, "compare shifts by cosines instead of products")
    distillation: float = option(1.0, "weight of the distillation of older nodes", minimum=0)
    head_only: float = option(
        0.6, "first share of the steps of a later domain that train the head only",
        minimum=0, maximum=1,
    )  # fmt: skip
    node_rule: Literal["paper", "coded"] = option(
        "paper", "a class gets a node by the published threshold, or if no image of it is right"
    )
    least_shots: int = option(4, "images of a class without which it gets no node", minimum=1)
    average_keep: float = option(
        0.99, "what a step leaves of the slow copy of the adapters", minimum=0, maximum=1
    )


class ICON(AdaptedMethod):
    """Shared adapters, their slow copy, and a head with more nodes than classes."""

    Config: ClassVar[type] = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5},
        "cddb-hard": {"base_epochs": 5},
        "domainnet": {"base_epochs": 2},
        **on_embedded_worlds(*LIMITS),
    }
    inputs = frozenset({"images"})
    inert: ClassVar[Mapping[str, str]] = {
        "shift_weight": "it acts from the fourth domain on, and a small slice has three",
        "shift_cosine": "as shift_weight",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, width = context.config, self.shape.width
        require_blocks(self.shape, config.blocks, "blocks")
        start, bound = context.generator("adapters"), width**-0.5
        shapes = ((config.rank, width), (config.rank,), (width, config.rank), (width,), ())
        adapter = {
            name: torch.zeros(config.blocks, *shape)
            for name, shape in zip(ADAPTER, shapes, strict=True)
        }
        for name in ("down", "down_bias"):
            adapter[name].uniform_(-bound, bound, generator=start)
        adapter["gain"] += 1
        self.add(adapter, "adapter.")
        self.add({"accuracies": torch.zeros(self.classes), "judged": torch.zeros(self.classes)})

    def learn(self, domain: TrainDomain) -> None:
        """Add nodes, train head and adapters, and note where the adapters have gone."""
        config, t = self.context.config, domain.index
        start = {name: value.clone() for name, value in self.adapter().items()}
        before = [{k: v.clone() for k, v in each.items()} for each in self.nodes()]
        if t:
            self.add_nodes(domain)
        if t == 1:
            self.add({name: value.clone() for name, value in start.items()}, "slow.")
        known = shift_clusters(self.of_domains("shift"), self.context.generator("clusters", t))
        held = int(config.head_only * config.steps) if t else 0
        step = 0

        def loss(batch: TrainBatch) -> torch.Tensor:
            moving = step >= held
            with self.context.backbone.autocast(), torch.set_grad_enabled(moving):
                features = self.encode(batch.images).float()
            nodes = self.nodes()
            loss = F.cross_entropy(self.class_logits(features, nodes, newest=t), batch.labels)
            if t and config.distillation:
                loss = loss + config.distillation * self.distilled(features, nodes, before)
            if moving and known is not None:
                shift = flat(self.adapter()) - flat(start)
                penalty = shift_penalty(shift, known, cosine=config.shift_cosine)
                loss = loss + config.shift_weight * penalty
            return loss

        def after_step() -> None:
            nonlocal step
            step += 1
            if t:
                self.follow()

        names = [f"adapter.{name}" for name in ADAPTER]
        self.train(domain, [*names, *self.head_names(), *self.own_nodes(t)], loss, after_step)
        self.add({"shift": flat(self.adapter()) - flat(start)}, f"domains.{t}.")
        self.judge(domain)

    def adapter(self, kind: str = "adapter") -> State:
        """The parts of the adapters, or of their slow copy."""
        return {name: self.weights[f"{kind}.{name}"] for name in ADAPTER}

    def add_nodes(self, domain: TrainDomain) -> None:
        """Nodes of a later domain: room for one of each class, of which `added` says which are."""
        accuracy, counts = self.accuracy(domain)
        config, t = self.context.config, domain.index
        usual = self.weights["accuracies"] / self.weights["judged"].clamp(min=1)
        limits = node_threshold(accuracy, usual)
        if config.node_rule == "coded":
            limits = torch.zeros_like(limits)
        added = (accuracy <= limits) & (counts >= config.least_shots)
        first = self.nodes()[0]
        new = {name: rows.clone() for name, rows in first.items() if name != "added"}
        for rows in new.values():
            rows[~added] = 0
        self.add(new | {"added": added}, f"domains.{t}.nodes.")

    def nodes(self) -> list[State]:
        """Weights and biases of all nodes, one set per domain, and which of a set exist."""
        everyone = torch.ones(self.classes, dtype=torch.bool, device=self.context.device)
        if self.text is None:
            first = {"weight": self.weights["head.weight"], "bias": self.weights["head.bias"]}
        else:
            first = {"weight": self.text.text}
        sets = [{**first, "added": everyone}]
        parts = [part for part in sets[0] if self.of_domains(f"nodes.{part}")]
        for rows in zip(*(self.of_domains(f"nodes.{part}") for part in parts), strict=True):
            sets.append(dict(zip(parts, rows, strict=True)))
        return sets

    def own_nodes(self, t: int) -> list[str]:
        """Names of what domain t trains of its own nodes."""
        start = f"domains.{t}.nodes."
        return [n for n in self.weights if n.startswith(start) and not n.endswith("added")]

    def node_logits(self, features: torch.Tensor, nodes: State) -> torch.Tensor:
        """Logits of one set of nodes, (n, C)."""
        if self.text is None:
            return F.linear(features, nodes["weight"], nodes["bias"])
        return self.text.scale * self.text.embed(features) @ nodes["weight"].T

    def class_logits(
        self, features: torch.Tensor, nodes: Sequence[State], newest: int = 0
    ) -> torch.Tensor:
        """The largest logit of each class, (n, C); `newest` is the set that stands for its classes
        in training."""
        logits = torch.stack([self.node_logits(features, each) for each in nodes])
        there = torch.stack([each["added"] for each in nodes])
        largest = logits.masked_fill(~there[:, None], -torch.inf).amax(0)
        return torch.where(there[newest], logits[newest], largest) if newest else largest

    def distilled(
        self, features: torch.Tensor, nodes: Sequence[State], before: Sequence[State]
    ) -> torch.Tensor:
        """KL from the older nodes as they are now to what they were, averaged over images."""
        there = torch.cat([each["added"] for each in before])
        now, old = (
            torch.cat([self.node_logits(features, each) for each in sets], 1)[:, there]
            for sets in (nodes[: len(before)], before)
        )
        return F.kl_div(
            old.log_softmax(1), now.log_softmax(1), reduction="batchmean", log_target=True
        )

    @torch.no_grad()
    def follow(self) -> None:
        """Move the slow copy of the adapters a little."""
        kept = self.context.config.average_keep
        for name, value in self.adapter().items():
            self.weights[f"slow.{name}"].lerp_(value, 1 - kept)

    def judge(self, domain: TrainDomain) -> None:
        """Add the accuracies on a domain that was learned to the record of each class."""
        accuracy, counts = self.accuracy(domain)
        self.weights["accuracies"] += accuracy
        self.weights["judged"] += counts > 0

    @torch.no_grad()
    def accuracy(self, domain: TrainDomain) -> tuple[torch.Tensor, torch.Tensor]:
        """Share of right predictions on the plain views of every class, and how many there are."""
        labels, views = domain.labels, plain_views(domain)
        right = torch.cat([self.predict(Batch(images)) for _, images in views]) == labels
        counts = labels.bincount(minlength=self.classes)
        return labels[right].bincount(minlength=self.classes) / counts.clamp(min=1), counts

    def encode(self, images: torch.Tensor, kind: str = "adapter") -> torch.Tensor:
        """The class token under the adapters or their slow copy, (n, width)."""
        parts = self.adapter(kind).values()
        branches = [partial(_branch, each) for each in zip(*parts, strict=True)]
        adapters = [BlockAdapter(attention_branch=branch) for branch in branches]
        adapters += [BlockAdapter()] * (self.shape.blocks - len(adapters))
        return self.class_token(images, adapters)

    def features(self, batch: Batch) -> torch.Tensor:
        """Features under the adapters."""
        return self.context.backbone.run_with(self.encode, batch.images)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """The largest logit of each class."""
        return self.class_logits(features, self.nodes())

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest probability under the adapters or their slow copy."""
        probable = self.logits(self.features(batch)).softmax(1)
        if "slow.gain" in self.weights:
            run, slow = self.context.backbone.run_with, partial(self.encode, kind="slow")
            probable = torch.maximum(probable, self.logits(run(slow, batch.images)).softmax(1))
        return probable.argmax(1)

    def diagnostics(self) -> dict[str, Any]:
        """How many nodes each later domain has added."""
        return {"nodes": [int(added.sum()) for added in self.of_domains("nodes.added")]}


def node_threshold(accuracy: torch.Tensor, usual: torch.Tensor) -> torch.Tensor:
    """Accuracies up to which classes get a new node, from those that they usually had."""
    fallen = torch.where(usual > 0, (usual - accuracy) / usual.clamp(min=1e-12), 0.0)
    return (_SHARPNESS * fallen).tanh().clamp(min=0)


def flat(tensors: State) -> torch.Tensor:
    """All numbers of an adapter in one row."""
    return torch.cat([tensors[name].flatten() for name in ADAPTER])


def _branch(parts: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    down, down_bias, up, up_bias, gain = parts
    return gain * F.linear(F.gelu(F.linear(x, down, down_bias)), up, up_bias)
