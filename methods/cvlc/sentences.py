"""The texts of CVLC: every class name and every synonym in every template, as tokens.

Text embeddings change with every training step, so all of them are computed at every step. This is
affordable because all texts are encoded as one tree of tokens, without padding and with common
beginnings only once. Synonyms get no gradient, so the additions are folded into the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from fsdil_bench import Context, RequestError
from fsdil_bench.adapters import BlockAdapter, TextTree, encode_tree, fold, text_tree

from .calibration import Calibration, embed_text
from .config import Config
from .text_prototypes import text_prototypes


class Sentences:
    """Tokenised texts, and the text prototypes that follow from them."""

    def __init__(self, context: Context, config: Config) -> None:
        for template in config.templates:
            if "{}" not in template:
                raise RequestError(
                    f"template '{template}' has no place for the class name", "Write {} in it."
                )
        self.model: Any = context.backbone.model
        self.backbone = context.backbone
        self.tau = config.tau
        self.names = self._tokenise(config, [[name] for name in context.class_names])
        # For a class without synonyms only its name counts.
        rich = [k for k, each in enumerate(context.synonyms) if each and config.synonyms]
        self.rich = torch.tensor(rich, dtype=torch.long, device=context.device)
        words = [context.synonyms[k][: config.most_synonyms] for k in rich]
        self.synonyms = self._tokenise(config, words) if words else None

    def prototypes(
        self,
        adapters: list[BlockAdapter],
        calibration: Calibration,
        text_shift: torch.Tensor,
        base_shift: torch.Tensor | None,
        *,
        checkpoint: bool = False,
    ) -> torch.Tensor:
        """Unit text prototypes (C, d) under a domain's additions and calibration."""

        def embed(texts: _Texts, additions: list[BlockAdapter]) -> torch.Tensor:
            with self.backbone.autocast():
                raw = encode_tree(
                    self.model, texts.tree, additions, checkpoint=checkpoint, lean=True
                )
            return embed_text(raw.float(), calibration, text_shift, base_shift)[texts.places]

        names = embed(self.names, adapters).squeeze(1)
        if self.synonyms is None:
            return text_prototypes(names)
        with torch.no_grad():
            synonyms = embed(self.synonyms, fold(self.model, adapters))
        share = calibration.synonym_share
        mixed = text_prototypes(names[self.rich], synonyms, share, self.tau)
        return text_prototypes(names).index_copy(0, self.rich, mixed)

    @property
    def trained_tokens(self) -> int:
        """How many tokens get a gradient: those of the class names."""
        return len(self.names.tree.tokens)

    def _tokenise(self, config: Config, words: Sequence[Sequence[str]]) -> _Texts:
        """The first words of every class, equally many of each, in all templates."""
        least = min(len(each) for each in words)
        sentences = [
            template.replace("{}", word)
            for each in words
            for word in list(each)[:least]
            for template in config.templates
        ]
        index = {text: i for i, text in enumerate(dict.fromkeys(sentences))}
        assert self.backbone.tokenizer is not None
        device = self.backbone.device
        tree = text_tree(self.backbone.tokenizer(list(index)), device=device)
        places = torch.tensor([index[text] for text in sentences], device=device)
        return _Texts(tree, places.view(len(words), least, len(config.templates)))


class _Texts(NamedTuple):
    """Distinct texts, and where each of them stands."""

    tree: TextTree
    places: torch.Tensor  # (classes, words, templates)
