"""CP-Prompt: S-Prompts with a prompt passed from domain to domain, and prefixes in the blocks.

Paper: Feng et al., CP-Prompt: Composition-Based Cross-modal Prompting for Domain-Incremental
Continual Learning, 2024. The image tower of domain t has

    a common prompt    tokens from the first block on, before the first layer norm. Domain t
                       continues to train those of domain t - 1, and keeps its own version
    prefixes           in some blocks, tokens P that only receive attention: keys W_k n(P)
                       and values W_v n(P) stand beside those of the image tokens, where n is the
                       tower's first layer norm, then the block's

with one prefix for keys and values (`key_value_prefix=shared`), or one half of it for each
(`key_value_prefix=split`). Text prompts, training and router are those of S-Prompts (see
`domain_prompts.py`).

Different from the original: every prefix is a tensor of its own domain (in the released code they
are rows of one tensor, which weight decay wears off), a few-shot domain trains for a number of
steps and has at most as many centres as images, images are normalised as CLIP wants them, and the
router that reads images of all domains again is not offered. Blocks and lengths per data set are
the published ones, which were tuned by their authors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Context, RequestError, option
from fsdil_bench.adapters import BlockAdapter, tower_blocks, tower_shape

from ..embedded import LIMITS, on_embedded_worlds
from .domain_prompts import DomainPromptConfig, DomainPrompts, uniform_tokens
from .prompt_training import Prompts


@dataclass(frozen=True)
class Config(DomainPromptConfig):
    """Options of cp-prompt; the defaults are those for CORe50."""

    common_length: int = option(4, "tokens of the common prompt", minimum=0)
    snapshots: bool = option(
        True, "every domain keeps its version of the common prompt; else all use the newest"
    )
    blocks: tuple[int, ...] = option((0, 9, 10), "blocks of the image tower that get a prefix")
    prefix_length: int = option(14, "tokens of a prefix", minimum=0)
    key_value_prefix: Literal["shared", "split"] = option(
        "shared", "keys and values come from the whole prefix, or from one half of it each"
    )


class CPPrompt(DomainPrompts):
    """Common and domain-specific image prompts, text prompts, and a router."""

    Config = Config
    #: The published values; those for CORe50 and shorter training on the embedded world.
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {
            "base_epochs": 50,
            "common_length": 6,
            "blocks": (3, 5, 6, 7, 8),
            "prefix_length": 10,
        },
        "core50": {"base_epochs": 20},
        "domainnet": {
            "base_epochs": 30,
            "common_length": 6,
            "blocks": tuple(range(1, 11)),
            "prefix_length": 70,
        },
        **on_embedded_worlds(*LIMITS),
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, count = context.config, tower_shape(self.visual).blocks
        if wrong := [block for block in config.blocks if not 0 <= block < count]:
            raise RequestError(
                f"the image tower of '{context.backbone.name}' has no block {wrong[0]}",
                f"Choose blocks from 0 to {count - 1}, for instance --set blocks=0,{count - 1}.",
            )
        if config.key_value_prefix == "split" and config.prefix_length % 2:
            raise RequestError(
                f"a prefix of {config.prefix_length} tokens has no halves",
                "Set prefix_length to an even number, or key_value_prefix=shared.",
            )

    def new_image_prompts(self, t: int) -> Prompts:
        """The common prompt of the domain before, and fresh prefixes."""
        config, width = self.context.config, tower_shape(self.visual).width
        lengths = {f"prefix.{block}": config.prefix_length for block in sorted(set(config.blocks))}
        lengths["common"] = config.common_length
        handed_on = {k: v for k, v in self.domains[-1].items() if k == "common"} if t else {}
        fresh = {
            name: uniform_tokens(length, width, self.context.generator(name, t))
            for name, length in lengths.items()
            if length and name not in handed_on
        }
        return {k: v.to(self.context.device) for k, v in fresh.items()} | handed_on

    def image_adapters(self, prompts: Prompts) -> list[BlockAdapter]:
        """The common prompt from the first block on, and a prefix in some."""
        adapters = []
        for i, block in enumerate(tower_blocks(self.visual)):
            slots: dict[str, Any] = {}
            if i == 0 and "common" in prompts:
                slots["tokens"] = self.visual.ln_pre(prompts["common"])
            if f"prefix.{i}" in prompts:
                slots |= self._prefix(block, self.visual.ln_pre(prompts[f"prefix.{i}"]))
            adapters.append(BlockAdapter(**slots))
        return adapters

    def prompts(self, t: int) -> Prompts:
        """Those of the domain, or with the newest common prompt."""
        if self.context.config.snapshots:
            return self.domains[t]
        return self.domains[t] | {k: v for k, v in self.domains[-1].items() if k == "common"}

    def _prefix(self, block: Any, tokens: torch.Tensor) -> dict[str, Any]:
        """Tokens as keys and values of a block."""
        if self.context.config.key_value_prefix == "shared":
            return {"kv_tokens": tokens}
        weights = block.attn.in_proj_weight.chunk(3)[1:]
        biases = block.attn.in_proj_bias.chunk(3)[1:]
        halves = block.ln_1(tokens).chunk(2)
        keys, values = (
            F.linear(half, weight, bias)
            for half, weight, bias in zip(halves, weights, biases, strict=True)
        )
        return {"prefix": (keys, values)}
