"""pgo-like: deep prompts for every domain in both towers, kept apart, and mixed with zero-shot.

Known of PGO-BEn (Mukherjee et al., TMLR 2026): its title (proxy-guided orthogonalization, Beta
ensembling), CLIP, prompts of length 8 in all blocks of both towers, per domain, shared by none; all
else here, so every formula below, is our guess, and this is not PGO-BEn.

Each block of both towers has its own prompt tokens P_tl in domain t (deep prompts). With the
classifier w_tc under them, CLIP's own w_c and z likewise

    loss = cross-entropy( s z_t w_tc, y )
           + orthogonality sum over s < t and all blocks of | cos(P_tl, P_sl) |
           + proxy mean over c of 1 - cos(w_tc, w_c),
    prediction = argmax over c of  g z_t . w_tc + (1 - g) z . w_c,      g = a / (a + b),

g being the mean of a Beta(a, b) distribution. The proxies of the name are taken to be the frozen
class names. A later domain starts from the prompts of the base domain; the router is that of
S-Prompts (`domain_prompts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, RequestError, option
from fsdil_bench.adapters import BlockAdapter, encode_tree, text_tree, tower_shape

from ..embedded import LIMITS, on_embedded_worlds
from ..text_classifier import class_embeddings, templates_option
from .domain_prompts import RoutedPromptConfig, RoutedPrompts
from .prompt_training import Prompts

TOWERS = ("image", "text")
_STD = 0.02


@dataclass(frozen=True)
class Config(RoutedPromptConfig):
    """Options of pgo-like."""

    start_from: Literal["fresh", "base", "previous"] = option(
        "base", "a later domain starts from fresh prompts, or from those of an earlier domain"
    )
    prompt_length: int = option(8, "prompt tokens of a block, in both towers", minimum=0)
    orthogonality: float = option(
        0.1, "weight of the cosines to the prompts of earlier domains", minimum=0
    )
    proxy: float = option(1.0, "weight of the distance of class names to CLIP's own", minimum=0)
    beta_prompted: float = option(
        2.0, "a of the Beta distribution: how much the prompted towers count", minimum=0
    )
    beta_zero_shot: float = option(2.0, "b: how much zero-shot CLIP counts", minimum=0)
    templates: tuple[str, ...] = templates_option()


class PGOLike(RoutedPrompts):
    """Deep prompts, a router and an ensemble with zero-shot CLIP."""

    Config = Config
    #: As for S-Prompts.
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {"base_epochs": 20},
        "core50": {"base_epochs": 20},
        "domainnet": {"base_epochs": 30},
        **on_embedded_worlds(*LIMITS),
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, backbone = context.config, context.backbone
        if not config.beta_prompted + config.beta_zero_shot:
            raise RequestError(
                "beta_prompted and beta_zero_shot are both zero",
                "Set one of them to a larger number.",
            )
        self.share = config.beta_prompted / (config.beta_prompted + config.beta_zero_shot)
        self.zero_shot = class_embeddings(context, config.templates)
        if backbone.tokenizer is None:
            raise RequestError(
                f"prompts need a text tower, backbone '{backbone.name}' has none",
                "Choose another with --backbone.",
            )
        texts = [t.replace("{}", name) for name in context.class_names for t in config.templates]
        self.tree = text_tree(backbone.tokenizer(texts).to(context.device))

    def new_prompts(self, t: int) -> Prompts:
        """Small random tokens for all blocks of both towers."""
        length = self.context.config.prompt_length
        if not length:
            return {}
        found = {}
        for name in TOWERS:
            shape = tower_shape(self._tower(name))
            start = self.context.generator(name, t)
            tokens = _STD * torch.randn(shape.blocks, length, shape.width, generator=start)
            found[name] = tokens.to(self.context.device)
        return found

    def image_adapters(self, prompts: Prompts) -> list[BlockAdapter] | None:
        """Deep prompts of the image tower."""
        return deep(prompts["image"]) if "image" in prompts else None

    @property
    def text_tokens(self) -> int:
        """Those of all sentences."""
        return len(self.tree.tokens)

    def text_classifier(self, prompts: Prompts, *, checkpoint: bool = False) -> torch.Tensor:
        """Class names under the deep prompts of the text tower."""
        if "text" not in prompts:
            return self.zero_shot
        backbone = self.context.backbone
        with backbone.autocast():
            raw = encode_tree(
                backbone.model, self.tree, deep(prompts["text"]), checkpoint=checkpoint, lean=True
            )
        each = F.normalize(raw.float(), dim=-1).view(len(self.zero_shot), -1, raw.shape[-1])
        return F.normalize(each.mean(1), dim=-1)

    def penalty(self, prompts: Prompts, classifier: torch.Tensor) -> torch.Tensor:
        """What keeps prompts apart and class names near."""
        config = self.context.config
        apart = not_orthogonal(prompts, self.domains)
        away = 1 - F.cosine_similarity(classifier, self.zero_shot).mean()
        return config.orthogonality * apart + config.proxy * away

    def similarity(self, batch: Batch, t: int) -> torch.Tensor:
        """The mixture of prompted and zero-shot cosines."""
        prompted = super().similarity(batch, t)
        return self.share * prompted + (1 - self.share) * batch.features @ self.zero_shot.T

    def _tower(self, name: str) -> Any:
        return self.visual if name == "image" else self.context.backbone.model


def deep(tokens: torch.Tensor) -> list[BlockAdapter]:
    """Prompts (blocks, length, width), each seen in its own block alone.

    What prompts themselves become in a block goes nowhere, so it is enough that they are looked at.
    """
    return [BlockAdapter(kv_tokens=each) for each in tokens]


def not_orthogonal(prompts: Prompts, others: Sequence[Prompts]) -> torch.Tensor:
    """Sum of | cos | of the prompts of each block to those of other domains."""
    total = torch.zeros((), device=next(iter(prompts.values())).device)
    for other in others:
        for name in TOWERS:
            cosines = F.cosine_similarity(prompts[name].flatten(1), other[name].flatten(1))
            total = total + cosines.abs().sum()
    return total
