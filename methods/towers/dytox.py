"""DyTox: one learned token and one head per domain, which read a shared tower.

Paper: Douillard et al., DyTox: Transformers for Continual Learning with DYnamic TOken eXpansion,
CVPR 2022. The patch tokens x of an image pass the blocks of a tower. Then a block with class
attention (`class_attention.py`) reads them once for every domain s, with the token theta_s:

    e_s = block(theta_s, x),      logits_s = head_s(e_s),      head = LayerNorm, then linear.

All C logits of all domains stand side by side, and the class of the largest is predicted
(`decision`). Domain t trains the block, theta_t and head_t on

    (1 - lam) BCE( all logits, one-hot at class y of domain t )  +  lam KL( old || new )

where old and new are the softmax of the logits of earlier domains before and in this domain, on the
same views, and KL is a mean over all elements. The base domain has no second term.

`dytox` keeps no image: it is what is left of the method without its memory. `dytox-replay` has the
memory of the original (2000 images, chosen by herding) and with it its third term, a classifier of
e_t into the current classes and one more for images of earlier domains.

Different from the original, which trains a ConViT of its own from nothing:
- The tower is CLIP's, frozen up to its last block; the block with class attention starts as a copy
  of the last one. CLIP has a class token, which at that place holds most of what CLIP knows of an
  image, and patches hold little of it. So theta_s is added to the class token and starts at zero:
  before training e is CLIP's own feature. With `class_token=false` theta_s stands alone, as in the
  original, and the first one starts at the mean class token.
- A later token and its head start as copies of those before. The original starts at random, which
  a few images cannot make up for.
- The biases of the first head start where every class has the probability 1 / C. From zero, most of
  a short training would go into learning that a class is mostly absent.
- lam is 0.5. The original's share of old outputs would be (T - 1) / T, and starve the few shots;
  `dytox-replay` has it (`distillation=none`).
- With memory, half of every batch is old images. The original mixes them as they come and then
  tunes on a balanced set, which this is already.
- Herding follows frozen features, so that what is kept does not depend on training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch.func import functional_call

from fsdil_bench import Batch, Context, State, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import image_tokens, tower_blocks

from ..plain_views import plain_views
from .class_attention import ClassAttention
from .distillation import distillation
from .heads import linear_logits, linear_start
from .trained_additions import AdditionConfig, TrainedAdditions

_MEASURED = 1024  # images of the base domain for the first token, at most


@dataclass(frozen=True)
class Config(AdditionConfig):
    """Options of dytox."""

    lr: float = option(5e-4, "learning rate of AdamW", minimum=0)
    schedule: Literal["constant", "cosine"] = option(
        "cosine", "course of the learning rate over the steps of a domain"
    )
    weight_decay: float = option(1e-6, "weight decay of AdamW", minimum=0)
    distillation: float | None = option(
        0.5, "share lam of the distillation in the loss; none: that of old outputs among all",
        minimum=0, maximum=1,
    )  # fmt: skip
    class_token: bool = option(
        True, "learned tokens are added to the class token of an image; else they stand alone"
    )
    decision: Literal["max", "logsumexp"] = option(
        "max", "a class is worth its largest logit, or the logarithm of the sum of all exp(logit)"
    )


class DyTox(TrainedAdditions):
    """A block with class attention, a token and a head for every domain."""

    Config: ClassVar[type] = Config
    inputs = frozenset({"images"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # It runs with the weights that it is given, not with its own.
        self._reader = ClassAttention(tower_blocks(self.visual)[-1])
        self.add({name: value.clone() for name, value in self._reader.state_dict().items()})

    def learn(self, domain: TrainDomain) -> None:
        """Add a token and a head, and train them and the block."""
        t = domain.index
        self.add(self.new_parts(domain), f"domains.{t}.")
        before = {name: value.clone() for name, value in self.block_weights().items()}
        own = (f"domains.{t}.", "block.", "divergence.")
        names = [name for name in self.weights if name.startswith(own)]
        self.train(domain, names, partial(self.loss, t=t, before=before))

    def new_parts(self, domain: TrainDomain) -> State:
        """Token and head that a domain starts with."""
        t, width = domain.index, self.shape.width
        if t:
            start = f"domains.{t - 1}."
            found = {k: v for k, v in self.weights.items() if k.startswith(start)}
            return {name.removeprefix(start): value.clone() for name, value in found.items()}
        last = self.visual.ln_post
        norm = {"norm.weight": last.weight.clone(), "norm.bias": last.bias.clone()}
        head = linear_start(self.classes, width, self.context.generator("head"))
        head["head.bias"] -= math.log(max(1, self.classes - 1))  # sigmoid(bias) = 1 / C
        alone = not self.context.config.class_token
        token = self.mean_class_token(domain) if alone else torch.zeros(width)
        return {"token": token} | norm | head

    def loss(self, batch: TrainBatch, t: int, before: State) -> torch.Tensor:
        """What domain t minimises on a batch of its own images."""
        tokens = self.entering(batch.images)
        with self.context.backbone.autocast():
            outputs = self.read(tokens, self.block_weights())
        logits = self.logits(outputs.float())
        return self.classified(logits, batch.labels + t * self.classes, tokens, before)

    def classified(
        self, logits: torch.Tensor, places: torch.Tensor, tokens: torch.Tensor, before: State
    ) -> torch.Tensor:
        """BCE of all logits (n, T C) with ones at `places`, and the distillation."""
        wanted = F.one_hot(places, logits.shape[1]).to(logits)
        loss = F.binary_cross_entropy_with_logits(logits, wanted)
        old = logits.shape[1] - self.classes
        if not old:
            return loss
        share = self.context.config.distillation
        share = old / logits.shape[1] if share is None else share
        with torch.no_grad(), self.context.backbone.autocast():
            outputs = self.read(tokens, before)
        taught = self.logits(outputs.float())[:, :old]
        # The mean over all elements, as in the original, not only over images.
        return (1 - share) * loss + share * distillation(logits[:, :old], taught) / old

    @torch.no_grad()
    def entering(self, images: torch.Tensor) -> torch.Tensor:
        """The tokens that enter the last block, class token first: nothing is trained below it."""
        with self.context.backbone.autocast():
            return image_tokens(self.visual, images, depth=self.shape.blocks - 1).tokens

    def mean_class_token(self, domain: TrainDomain) -> torch.Tensor:
        """The mean class token that enters the last block, over some images, (width,)."""
        order = torch.randperm(len(domain), generator=self.context.generator("token"))[:_MEASURED]
        total = torch.zeros(self.shape.width, dtype=torch.float64, device=self.context.device)
        for _, images in plain_views(domain, order):
            first = self.context.backbone.run_with(lambda x: self.entering(x)[:, 0], images)
            total += first.double().sum(0)
        return (total / len(order)).float()

    def read(self, x: torch.Tensor, block: State) -> torch.Tensor:
        """What the tokens of all domains read in what `entering` returns, (n, T, width)."""
        tokens = torch.stack(self.of_domains("token")).expand(len(x), -1, -1)
        if self.context.config.class_token:
            tokens = tokens + x[:, :1]
        found: torch.Tensor = functional_call(self._reader, block, (tokens, x[:, 1:]))
        return found

    def logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """Logits of all domains side by side, (n, T C)."""
        found = []
        for s, output in enumerate(outputs.unbind(1)):
            own = {
                part: self.weights[f"domains.{s}.{part}"]
                for part in ("norm.weight", "norm.bias", "head.weight", "head.bias")
            }
            normed = F.layer_norm(output, output.shape[-1:], own["norm.weight"], own["norm.bias"])
            found.append(F.linear(normed, own["head.weight"], own["head.bias"]))
        return torch.cat(found, 1)

    def block_weights(self) -> State:
        """The weights of the block with class attention."""
        return {name: v for name, v in self.weights.items() if name.startswith("block.")}

    def optimizer(self, trained: list[torch.Tensor], domain: TrainDomain) -> torch.optim.Optimizer:
        """AdamW for a domain."""
        del domain
        config = self.context.config
        return torch.optim.AdamW(
            trained, lr=config.lr, weight_decay=config.weight_decay, fused=self.context.fused
        )

    def features(self, batch: Batch) -> torch.Tensor:
        """What all tokens read, (n, T width)."""

        def encode(images: torch.Tensor) -> torch.Tensor:
            return self.read(self.entering(images), self.block_weights()).flatten(1)

        return self.context.backbone.run_with(encode, batch.images)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest logit, or sum of logits, of all domains."""
        outputs = self.features(batch).unflatten(1, (-1, self.shape.width))
        logits = self.logits(outputs).unflatten(1, (-1, self.classes))
        best = logits.amax(1) if self.context.config.decision == "max" else logits.logsumexp(1)
        return best.argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """What the token of the last domain reads."""
        return self.features(batch)[:, -self.shape.width :]


@dataclass(frozen=True)
class ReplayConfig(Config):
    """Options of dytox-replay."""

    distillation: float | None = option(
        None, "share lam of the distillation in the loss; none: that of old outputs among all",
        minimum=0, maximum=1,
    )  # fmt: skip
    kept_images: int = option(2000, "images of earlier domains in memory", minimum=1)
    divergence: float = option(
        0.1, "weight of telling current classes from images of earlier domains", minimum=0
    )


class DyToxReplay(DyTox):
    """DyTox with a memory of images."""

    Config: ClassVar[type] = ReplayConfig
    inert: ClassVar[Mapping[str, str]] = {"kept_images": "a small slice has fewer images"}

    def learn(self, domain: TrainDomain) -> None:
        """Learn a domain together with the memory of those before."""
        t = domain.index
        self._memory = self.memory(domain) if t else []
        self._drawn = self.context.generator("replay", t)
        if t:
            start = self.context.generator("divergence", t)
            self.add(linear_start(self.classes + 1, self.shape.width, start, "divergence"))
        super().learn(domain)
        self._memory = []
        self.weights = {k: v for k, v in self.weights.items() if not k.startswith("divergence.")}

    def memory(self, domain: TrainDomain) -> list[tuple[TrainDomain, torch.Tensor]]:
        """Earlier domains and the positions of their images that are kept."""
        earlier = domain.earlier
        each = max(1, self.context.config.kept_images // (len(earlier) * self.classes))
        return [(old, herd(old.features(), old.labels, self.classes, each)) for old in earlier]

    def batches(self, domain: TrainDomain) -> Iterator[TrainBatch]:
        """Batches of the domain's own images: where there is a memory, half of a batch."""
        config = self.context.config
        size = max(1, config.batch_size // 2) if self._memory else config.batch_size
        steps = config.steps_for(domain)
        return domain.batches(size, steps=steps, augment=config.augment)

    def loss(self, batch: TrainBatch, t: int, before: State) -> torch.Tensor:
        """That of DyTox on old and new images, and the divergence of the new token's output."""
        if not t:
            return super().loss(batch, t, before)
        images, places = [batch.images], [batch.labels + t * self.classes]
        for s, part in enumerate(self.replayed(max(1, self.context.config.batch_size // 2))):
            images.append(part.images)
            places.append(part.labels + s * self.classes)
        tokens, wanted = self.entering(torch.cat(images)), torch.cat(places)
        with self.context.backbone.autocast():
            outputs = self.read(tokens, self.block_weights()).float()
        loss = self.classified(self.logits(outputs), wanted, tokens, before)
        told = linear_logits(outputs[:, -1], self.weights, "divergence")
        bins = torch.where(wanted < t * self.classes, self.classes, wanted - t * self.classes)
        return loss + self.context.config.divergence * F.cross_entropy(told, bins)

    def replayed(self, count: int) -> Iterator[TrainBatch]:
        """Images of the memory, one batch per earlier domain, together `count` or a few more."""
        share = -(-count // len(self._memory))
        for old, kept in self._memory:
            some = torch.randint(len(kept), (min(share, len(kept)),), generator=self._drawn)
            draw = int(torch.randint(1 << 30, (1,), generator=self._drawn))
            augmented = draw if self.context.config.augment else None
            yield old.take(kept[some].tolist(), draw=augmented)


def herd(features: torch.Tensor, labels: torch.Tensor, classes: int, each: int) -> torch.Tensor:
    """Positions of up to `each` images of every class whose mean stays near the class mean.

    One after another, that image comes in which brings the mean of the chosen ones nearest to the
    mean of the class (iCaRL, Rebuffi et al., 2017).
    """
    chosen = []
    for c in range(classes):
        places = (labels == c).nonzero()[:, 0]
        own = features[places].double()
        mean, total = own.mean(0), torch.zeros_like(own[:1]).sum(0)
        left = torch.ones(len(own), dtype=torch.bool, device=own.device)
        for count in range(min(each, len(own))):
            far = (mean - (total + own) / (count + 1)).norm(dim=1)
            best = int(far.masked_fill(~left, torch.inf).argmin())
            left[best] = False
            total = total + own[best]
            chosen.append(int(places[best]))
    return torch.tensor(chosen, dtype=torch.long)
