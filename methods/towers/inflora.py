"""InfLoRA: low-rank updates that cannot disturb the inputs of earlier domains.

Paper: Liang and Li, InfLoRA: Interference-Free Low-Rank Adaptation for Continual Learning, CVPR
2024. In every block and for every domain s, the keys and the values of the normed tokens x become

    k = W_k x + sum over s of B_s A_s x,      v likewise with its own B_s

where the rows of A_s are chosen before training and stay: the strongest directions of the domain's
inputs that earlier domains have left free (`free_directions.py`), divided by sqrt(3). Only B_s is
trained, from zero. Since A_s x = 0 for inputs in taken directions, the update does nothing to them.
After training, the directions of the domain's inputs are taken up to a share that grows from
`protect` in the base domain to `protect_last` in domain number `horizon`.

There is no router: features are those under the sum of all updates. Heads:

    linear    one classifier for all domains
    concat    the original: one per domain, trained only in it; the largest logit of all decides
    text      CLIP's class names

Different from the original:
- Its heads are for new classes. Where classes stay, those of `concat` compete without having been
  calibrated to each other, so that `linear` is the default.
- A method is not told how many domains will come: hence `horizon`.
- The inputs are measured on plain views, of at most so many images (`measured_images`).
- In the base domain the share is reached, where the original stops one direction before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, fold, image_tokens

from ..embedded import LIMITS, on_embedded_worlds
from .adapted_training import AdaptedConfig, AdaptedMethod
from .free_directions import Directions, all_free, strongest, take
from .heads import linear_logits, linear_start


@dataclass(frozen=True)
class Config(AdaptedConfig):
    """Options of inflora."""

    head: Literal["linear", "concat", "text"] = option(  # type: ignore[assignment]
        "linear", "one trained classifier, one per domain, or the one made of class names"
    )
    lr: float = option(5e-4, "learning rate of Adam", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "cosine", "course of the learning rate over the steps of a domain"
    )
    rank: int = option(10, "rank of a domain's updates", minimum=1)
    protect: float = option(
        0.98, "protected share of the base domain's inputs", minimum=0, maximum=1
    )
    protect_last: float = option(
        1.0, "protected share in the last domain of the horizon", minimum=0, maximum=1
    )
    horizon: int = option(10, "domains until the protected share reaches protect_last", minimum=1)
    measured_images: int = option(
        1024, "at most so many images of a domain to measure its inputs on", minimum=1
    )


class InfLoRA(AdaptedMethod):
    """One low-rank update per domain in every block."""

    Config: ClassVar[type] = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "core50": {"base_epochs": 5, "horizon": 8},
        "cddb-hard": {"base_epochs": 5, "horizon": 5},
        "domainnet": {"base_epochs": 2, "batch_size": 128, "rank": 30, "horizon": 6},
        **on_embedded_worlds(*LIMITS, horizon=8),
    }
    inputs = frozenset({"images"})
    inert: ClassVar[Mapping[str, str]] = {"measured_images": "a small slice has fewer images"}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        blocks, width = self.shape.blocks, self.shape.width
        # At most half of the directions are kept; the rest is zeros, so that the size is constant.
        self.add(
            {
                "bases": torch.zeros(blocks, width, width // 2),
                "sizes": torch.zeros(blocks, dtype=torch.long),
                "are_free": torch.zeros(blocks, dtype=torch.bool),
            }
        )
        self._folded: list[BlockAdapter] = []

    def learn(self, domain: TrainDomain) -> None:
        """Choose A, train B and the head, take the directions of the domain."""
        t, before = domain.index, self.adapters()
        self.add(self.new_updates(self.moments(domain, before)), f"domains.{t}.")
        names = [f"domains.{t}.{part}" for part in ("key", "value")]
        if self.context.config.head == "concat":
            start = self.context.generator("head", t)
            head = linear_start(self.classes, self.shape.width, start)
            self.add(head, f"domains.{t}.")
            names += [f"domains.{t}.{name}" for name in head]

        def loss(batch: TrainBatch) -> torch.Tensor:
            with self.context.backbone.autocast():
                features = self.encode(batch.images, self.with_update(before, t))
            return F.cross_entropy(self.own_logits(features.float(), t), batch.labels)

        self.train(domain, [*names, *self.head_names()], loss)
        self._folded = []
        self.protect(self.moments(domain, self.adapters()), t)

    def new_updates(self, moments: torch.Tensor) -> State:
        """A of all blocks from the inputs of the domain, and B = 0 for keys and values."""
        rank = min(self.context.config.rank, self.shape.width)
        rows = [
            strongest(known, block, rank)
            for known, block in zip(self.directions(), moments, strict=True)
        ]
        down = torch.stack(rows).float() / math.sqrt(3)
        return {"down": down} | {name: torch.zeros_like(down.mT) for name in ("key", "value")}

    def protect(self, moments: torch.Tensor, t: int) -> None:
        """Take the directions of domain t."""
        config = self.context.config
        share = config.protect + (config.protect_last - config.protect) * min(
            1.0, t / config.horizon
        )
        for i, known in enumerate(self.directions()):
            basis, are_free = take(known, moments[i], share)
            size = basis.shape[1]
            self.weights["bases"][i] = 0
            self.weights["bases"][i, :, :size] = basis
            self.weights["sizes"][i], self.weights["are_free"][i] = size, are_free

    def directions(self) -> list[Directions]:
        """What is taken or free in every block."""
        if not self.of_domains("down"):
            return [all_free(self.shape.width)] * self.shape.blocks
        kept = zip(*(self.weights[k].cpu() for k in ("bases", "sizes", "are_free")), strict=True)
        return [Directions(basis[:, :size].double(), bool(free)) for basis, size, free in kept]

    @torch.no_grad()
    def moments(self, domain: TrainDomain, adapters: Sequence[BlockAdapter]) -> torch.Tensor:
        """C of every block, (blocks, w, w), in full precision."""
        config, shape = self.context.config, self.shape
        sums = torch.zeros(
            shape.blocks, shape.width, shape.width, dtype=torch.float64, device=self.context.device
        )
        watching = [
            replace(adapter, attention_branch=_watch(total))
            for adapter, total in zip(adapters, sums, strict=True)
        ]
        wanted, size = min(config.measured_images, len(domain)), config.batch_size
        images = tokens = 0
        for batch in domain.batches(size, steps=-(-wanted // size), augment=False):
            part = batch.images[: wanted - images]
            images += len(part)
            tokens += image_tokens(self.visual, part, watching).tokens[..., 0].numel()
        return (sums / tokens).cpu()

    def adapters(self) -> list[BlockAdapter]:
        """The tower under the updates of all domains, multiplied into its weights."""
        if not self._folded:
            plain = [BlockAdapter()] * self.shape.blocks
            learned = self.of_domains("down")
            if learned:
                down, key, value = (
                    torch.cat(self.of_domains(part), axis)
                    for part, axis in (("down", 1), ("key", 2), ("value", 2))
                )
                plain = _lora(plain, down, key, value)
            self._folded = fold(self.visual, plain)
        return self._folded

    def with_update(self, adapters: Sequence[BlockAdapter], t: int) -> list[BlockAdapter]:
        """Adapters with the update of domain t in addition."""
        down, key, value = (self.weights[f"domains.{t}.{k}"] for k in ("down", "key", "value"))
        return _lora(adapters, down, key, value)

    def encode(self, images: torch.Tensor, adapters: Sequence[BlockAdapter]) -> torch.Tensor:
        """The class token, (n, width)."""
        return self.class_token(images, adapters)

    def features(self, batch: Batch) -> torch.Tensor:
        """Features under the updates of all domains."""
        adapters = self.adapters()
        return self.context.backbone.run_with(lambda x: self.encode(x, adapters), batch.images)

    def own_logits(self, features: torch.Tensor, t: int) -> torch.Tensor:
        """Logits in the training of domain t."""
        if self.context.config.head == "concat":
            return linear_logits(features, self.weights, f"domains.{t}.head")
        return self.logits(features)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Logits of all classes; with several heads, the largest of each class."""
        if self.context.config.head != "concat":
            return super().logits(features)
        heads = range(len(self.of_domains("down")))
        return torch.stack([self.own_logits(features, t) for t in heads]).amax(0)

    def load_state_dict(self, state: State) -> None:
        """Load the weights."""
        super().load_state_dict(state)
        self._folded = []

    def diagnostics(self) -> dict[str, Any]:
        """How many directions are taken in every block, of `width`."""
        width = self.shape.width
        sizes = zip(self.weights["sizes"].tolist(), self.weights["are_free"].tolist(), strict=True)
        return {"taken": [width - size if free else size for size, free in sizes], "width": width}


def _lora(
    adapters: Sequence[BlockAdapter], down: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> list[BlockAdapter]:
    pairs = zip(adapters, down, key, value, strict=True)
    return [replace(adapter, lora={"k": (d, k), "v": (d, v)}) for adapter, d, k, v in pairs]


def _watch(total: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """A branch that adds x x' of all tokens to `total`, and nothing to the tokens."""

    def branch(x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, 1).float()
        total.add_(rows.T @ rows)
        return torch.zeros_like(x)

    return branch
