"""The texts of CVLC: every class name and every synonym in every template, as tokens.

Text embeddings change with every training step, so all of them are computed at every step; what
makes that bearable is that each distinct text is encoded once, that texts of equal length are
encoded together without padding, and that synonyms, which get no gradient, are encoded with the
additions folded into the weights.
"""

from __future__ import annotations

from typing import Any

import torch

from fsdil_bench import Context, RequestError
from fsdil_bench.adapters import BlockAdapter, encode_text, fold

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
        use = config.synonyms and context.synonyms
        self.synonyms = self._tokenise(config, context.synonyms) if use else None

    def prototypes(
        self,
        adapters: list[BlockAdapter],
        calibration: Calibration,
        text_shift: torch.Tensor,
        base_shift: torch.Tensor | None,
    ) -> torch.Tensor:
        """Unit text prototypes (C, d) under a domain's additions and calibration."""

        def embed(tokens: _Tokens, additions: list[BlockAdapter]) -> torch.Tensor:
            with self.backbone.autocast():
                raw = encode_text(self.model, tokens.distinct, additions, by_length=True)
            calibrated = embed_text(raw.float(), calibration, text_shift, base_shift)
            return calibrated[tokens.places]

        names = embed(self.names, adapters).squeeze(1)
        if self.synonyms is None:
            return text_prototypes(names)
        with torch.no_grad():
            synonyms = embed(self.synonyms, fold(self.model, adapters))
        return text_prototypes(names, synonyms, calibration.synonym_share, self.tau)

    def _tokenise(self, config: Config, words: Any) -> _Tokens:
        """Tokens of (classes, words per class, templates) texts."""
        least = min(len(each) for each in words)  # a rectangle, even if one class has more words
        texts = [
            template.replace("{}", word)
            for each in words
            for word in list(each)[:least]
            for template in config.templates
        ]
        distinct = list(dict.fromkeys(texts))
        index = {text: i for i, text in enumerate(distinct)}
        assert self.backbone.tokenizer is not None
        places = torch.tensor([index[text] for text in texts])
        shape = (len(words), least, len(config.templates))
        tokens = self.backbone.tokenizer(distinct).to(self.backbone.device)
        return _Tokens(tokens, places.view(shape).to(self.backbone.device))


class _Tokens:
    """Distinct texts as tokens, and where each of them stands."""

    def __init__(self, distinct: torch.Tensor, places: torch.Tensor) -> None:
        self.distinct = distinct
        self.places = places
