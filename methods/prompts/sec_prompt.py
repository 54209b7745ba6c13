"""SEC-Prompt: two pools of prompts, one that tells classes apart and one that does not.

Paper: Liu and Yang, SEC-Prompt: SEmantic Complementary Prompting for Few-Shot Class-Incremental
Learning, CVPR 2025. Both pools are like CODA-Prompt's: components P_m with keys K_m and attentions
A_m, in every block of their own. The query is the class token q that enters the block, so that no
second pass is needed. With s_m = cos(q * A_m, K_m)

    discriminative    p = sum over m of softmax(s)_m P_m            in 8 blocks
    the other         r = sum over m of relu(-s_m) P_m              in 5 blocks

from the second one on (in the first, q is the same for all images), and p and r are tokens of their
block alone (deep prompts). The loss is

    cross-entropy + cluster_weight mean over blocks of [ sum over i, j (1 - cos(p_i, p_j)) / B ]

over all i and j of one class among the B images of a step. Every domain adds components to the
first pool and trains them; older ones are frozen, and so is the second pool after the base domain.
In a later domain the second pool makes more images of the few: in its first block each image is
repeated, with noise on the weights of r: from there it is 1 + `copies` images of its class. The
classifier is a cosine head whose rows start at class means and become class means again
(`prototype_prompts.py`).

Different from the original, whose released code its authors call not thoroughly verified:
- Pools have 0.5 C components at first, as published, but at least 4: with one component its softmax
  is constant. A later domain adds 0.1 C, at least 2, where the original adds half of its classes.
- Overwriting prototypes is the original and forgets earlier domains; by default every domain keeps
  its own. In training those of earlier domains count for wrong classes only.
- New components are orthogonal to all older ones (see `components.py`).
- The budget of a later domain is in steps; the original has ten passes, or none on ImageNet-R.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, TrainBatch, TrainDomain, option
from fsdil_bench.adapters import BlockAdapter, image_tokens, run_block, tower_blocks

from ..domain_prototypes import own_similarity
from ..towers.trained_additions import AdditionConfig
from .components import PARTS, orthogonal
from .prompt_keys import require_blocks
from .prototype_prompts import PrototypePromptConfig, PrototypePrompts

_FEWEST, _FEWEST_MORE = 4, 2  # components of a pool, and those that a domain adds
_FIRST = 1  # block with prompts


@dataclass(frozen=True)
class Config(PrototypePromptConfig, AdditionConfig):
    """Options of sec-prompt."""

    weight_decay: float = option(0.005, "weight decay of SGD", minimum=0)
    base_epochs: int = option(30, "passes over the base domain", minimum=0)
    later_lr: float = option(0.001, "learning rate in a few-shot domain", minimum=0)
    discriminative_blocks: int = option(
        8, "blocks from the second on, which get prompts that tell classes apart", minimum=1
    )
    other_blocks: int = option(
        5, "blocks from the second on, which get the other prompts", minimum=1
    )
    pool: float = option(0.5, "components of a pool at first, for every class", minimum=0)
    growth: float = option(
        0.1, "components that a later domain adds to the discriminative pool, for every class",
        minimum=0,
    )  # fmt: skip
    cluster_weight: float = option(
        0.5, "weight of the pull of discriminative prompts of a class to each other", minimum=0
    )
    copies: int = option(2, "noisy copies of an image of a few-shot domain", minimum=0)
    noise: float = option(0.5, "noise on the weights of the other prompts of copies", minimum=0)


class Encoded(NamedTuple):
    """Class tokens (n, w), and the discriminative prompts of every block (blocks, n, l, w)."""

    features: torch.Tensor
    prompts: torch.Tensor


class SECPrompt(PrototypePrompts):
    """Discriminative prompts that grow with the domains, and others that augment."""

    Config: ClassVar[type] = Config
    inputs = frozenset({"images"})
    inert: ClassVar[Mapping[str, str]] = {
        "pool": "with three classes a pool has its fewest components"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = context.config
        for name in ("discriminative_blocks", "other_blocks"):
            require_blocks(self.shape, _FIRST + getattr(config, name), f"1 + {name}")
        first = max(_FEWEST, round(config.pool * self.classes))
        self.add(self._components("other", config.other_blocks, first), "other.")

    def learn(self, domain: TrainDomain) -> None:
        """Train the domain's components and rows, then take its class means as prototypes."""
        config, t = self.context.config, domain.index
        share, least = (config.growth, _FEWEST_MORE) if t else (config.pool, _FEWEST)
        count = max(least, round(share * self.classes))
        self.add(self._components(t, config.discriminative_blocks, count), f"domains.{t}.")
        self.weights["head"] = self.class_means(domain)
        others = self.weights["prototypes"]
        if config.prototypes != "domain-max":
            others = others[:0]
        noise = self.context.generator("copies", t)

        def loss(batch: TrainBatch) -> torch.Tensor:
            copies = config.copies if t else 0
            with self.context.backbone.autocast():
                found = self.encode(batch.images, copies, noise)
            labels = batch.labels.repeat(1 + copies)
            cosines = own_similarity(found.features, labels, self.weights["head"], others)
            loss = F.cross_entropy(self.weights["scale"] * cosines.float(), labels)
            return loss + config.cluster_weight * cluster(found.prompts.float(), labels)

        names = [f"domains.{t}.{part}" for part in PARTS]
        if t == 0:
            names += [f"other.{part}" for part in PARTS]
        self.train(domain, [*names, "head", "scale"], loss)
        del self.weights["head"]
        self.remember(self.plain_features(domain), domain.labels)

    def rate_in(self, domain: TrainDomain) -> float:
        """The learning rate at the start of a domain."""
        config = self.context.config
        rate: float = config.later_lr if domain.index else config.lr
        return rate

    def encode(
        self, images: torch.Tensor, copies: int = 0, noise: torch.Generator | None = None
    ) -> Encoded:
        """Images block by block; with copies (1 + copies) n rows, the plain ones first."""
        own = [self.so_far(part) for part in PARTS]
        other = [self.weights[f"other.{part}"] for part in PARTS]
        x = image_tokens(self.visual, images, depth=0).tokens
        found = []
        for i, block in enumerate(tower_blocks(self.visual), -_FIRST):
            query, prompts = x[:, 0], []
            if 0 <= i < len(own[0]):
                keys, attentions, components = (part[i] for part in own)
                weights = asked(query, keys, attentions).softmax(1)
                prompts.append(torch.einsum("nm,mlw->nlw", weights, components))
            if 0 <= i < len(other[0]):
                keys, attentions, components = (part[i] for part in other)
                weights = (-asked(query, keys, attentions)).relu()
                if i == 0 and copies:
                    x, weights = x.repeat(1 + copies, 1, 1), weights.repeat(1 + copies, 1)
                    prompts = [each.repeat(1 + copies, 1, 1) for each in prompts]
                    weights = weights + self._noise(weights, len(images), noise)
                prompts.append(torch.einsum("nm,mlw->nlw", weights, components))
            if 0 <= i < len(own[0]):
                found.append(prompts[0])
            tokens = torch.cat([*(each.to(x.dtype) for each in prompts), x], 1)
            x = run_block(block, tokens, BlockAdapter())[:, tokens.shape[1] - x.shape[1] :]
        return Encoded(self.visual.ln_post(x[:, 0]), torch.stack(found))

    def features(self, batch: Batch) -> torch.Tensor:
        """The class token under the prompts, without copies."""
        return self.context.backbone.run_with(lambda x: self.encode(x).features, batch.images)

    def so_far(self, part: str) -> torch.Tensor:
        """A part of the discriminative components of all domains, (blocks, m, ...)."""
        return torch.cat(self.of_domains(part), 1)

    def _components(self, purpose: object, blocks: int, count: int) -> dict[str, torch.Tensor]:
        """New components: unit vectors, orthogonal to each other and to those of the pool."""
        start, width = self.context.generator("components", purpose), self.shape.width
        shapes = ((width,), (width,), (self.context.config.prompt_length, width))
        old = [
            self.so_far(part)
            if purpose != "other" and self.of_domains(part)
            else torch.zeros(blocks, 0, *shape, device=self.context.device)
            for part, shape in zip(PARTS, shapes, strict=True)
        ]
        return {
            part: torch.stack([orthogonal(rows, count, start) for rows in known])
            for part, known in zip(PARTS, old, strict=True)
        }

    def _noise(
        self, weights: torch.Tensor, plain: int, generator: torch.Generator | None
    ) -> torch.Tensor:
        """Noise for all rows but the plain ones."""
        drawn = torch.randn(weights.shape, generator=generator)
        drawn[:plain] = 0
        return self.context.config.noise * drawn.to(weights)


def asked(query: torch.Tensor, keys: torch.Tensor, attentions: torch.Tensor) -> torch.Tensor:
    """cos(q * A_m, K_m) of queries (n, w), keys and attentions (m, w): (n, m)."""
    with torch.autocast(query.device.type, enabled=False):
        # As matrix products, which need no (n, m, w) numbers.
        products = query.float() @ (attentions * F.normalize(keys, dim=-1)).T
        lengths = (query.float().square() @ attentions.square().T).clamp(min=1e-24).sqrt()
        return products / lengths


def cluster(prompts: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of prompts (blocks, n, l, w): the sum of 1 - cos over all pairs of a class, both ways, by n;
    the mean of that over blocks."""
    unit = F.normalize(prompts.flatten(2), dim=-1)
    pairs = labels[:, None] == labels
    return ((1 - unit @ unit.mT) * pairs).sum((1, 2)).mean() / len(labels)
