"""CVLC's text prototypes (`text_prototypes.py`) on embeddings of the frozen text tower."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fsdil_bench import Context, option

from ..text_classifier import check_templates
from .calibration import embed_frozen
from .config import TEMPLATES
from .text_prototypes import text_prototypes


@dataclass(frozen=True)
class TextConfig:
    """Options of text-prototypes."""

    templates: tuple[str, ...] = option(
        TEMPLATES, "sentences with {} for the class name; a JSON list"
    )
    synonyms: bool = option(True, "mix synonyms into the prototypes if there are any")
    most_synonyms: int = option(10, "synonyms of a class that are used, at most", minimum=1)
    synonym_share: float = option(0.5, "share of the synonyms", minimum=0, maximum=1)
    tau: float = option(1.0, "temperature of the synonyms' weights", minimum=1e-6)


def text_prototypes_of(context: Context, power: float | None = None) -> torch.Tensor:
    """Unit prototypes (C, d) from the frozen text tower; `power` is that of PowerNorm, if any.

    Like in CVLC, classes with synonyms have equally many, and the others only their names.
    """
    config = context.config
    check_templates(config.templates)
    names = _embedded(context, [[name] for name in context.class_names], power)[:, 0]
    found = text_prototypes(names)
    rich = [k for k, words in enumerate(context.synonyms) if words and config.synonyms]
    if rich:
        least = min(config.most_synonyms, *(len(context.synonyms[k]) for k in rich))
        words = [list(context.synonyms[k])[:least] for k in rich]
        synonyms = _embedded(context, words, power)
        found[rich] = text_prototypes(names[rich], synonyms, config.synonym_share, config.tau)
    return found


def _embedded(context: Context, words: list[list[str]], power: float | None) -> torch.Tensor:
    """Embeddings (classes, words, templates, d)."""
    templates = context.config.templates
    texts = [template.replace("{}", w) for each in words for w in each for template in templates]
    e = embed_frozen(context.backbone.encode_text(texts), power)
    return e.view(len(words), len(words[0]), len(templates), -1)
