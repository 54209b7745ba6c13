"""S-Prompts: separate prompts for every domain, in both towers.

Paper: Wang, Huang and Hong, S-Prompts Learning with Pre-trained Transformers: An Occam's Razor for
Domain Incremental Learning, 2022; this is its S-liPrompts for CLIP. Domain t trains L tokens P_t
beside the image tokens, from the first block on,

    z_t(x) = n( image([class token, P_t, patches]) ),

put in before the first layer norm, and M context vectors in front of the class names (see
`text_prompts.py`); `domain_prompts.py` describes how both are trained and chosen.

Different from the original: a few-shot domain trains for a number of steps and has at most as many
centres as images, all domains have the same learning rate and weight decay, and images are
normalised as CLIP wants them. With few images the centres are (nearly) features of single images.

The method `soyo` is this with a trained classifier of domains as its router (`domain_selector.py`).
Wang et al., Boosting Domain Incremental Learning: Selecting the Optimal Parameters Is All You Need,
CVPR 2025, also train bottlenecks after each block; here the router is all that differs, so that the
two rows show what it adds. It keeps Gaussians of domains, not features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fsdil_bench import option
from fsdil_bench.adapters import BlockAdapter, tower_shape

from ..embedded import LIMITS, on_embedded_worlds
from .domain_prompts import DomainPromptConfig, DomainPrompts, uniform_tokens
from .prompt_training import Prompts


@dataclass(frozen=True)
class Config(DomainPromptConfig):
    """Options of s-prompts."""

    prompt_length: int = option(10, "prompt tokens in the image tower", minimum=0)


class SPrompts(DomainPrompts):
    """Independent image and text prompts, and a router."""

    Config = Config
    #: The published epochs; shorter on the embedded world.
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {"base_epochs": 20},
        "core50": {"base_epochs": 20},
        "domainnet": {"base_epochs": 30},
        **on_embedded_worlds(*LIMITS),
    }

    def new_image_prompts(self, t: int) -> Prompts:
        """Tokens before the first layer norm."""
        length, width = self.context.config.prompt_length, tower_shape(self.visual).width
        if not length:
            return {}
        tokens = uniform_tokens(length, width, self.context.generator("image", t))
        return {"image": tokens.to(self.context.device)}

    def image_adapters(self, prompts: Prompts) -> list[BlockAdapter]:
        """Tokens from the first block on."""
        plain = [BlockAdapter()] * tower_shape(self.visual).blocks
        if "image" not in prompts:
            return plain
        return [BlockAdapter(tokens=self.visual.ln_pre(prompts["image"])), *plain[1:]]
