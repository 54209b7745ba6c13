"""Text prototypes of the classes, from their names and synonyms in several templates.

CVLC, the text side of the classifier. With the calibrated embeddings of a name in all templates

    g = n( mean over templates )
    s_o = softmax over synonyms o of cos(g_k, g_ko) / tau
    mu_k = n( lambda sum_o s_o g_ko  +  (1 - lambda) g_k )

The paper does not state tau; the authors use 1. Gradients flow through the class names, both
directly and through the weights s, and into lambda; synonyms count as constants, so that the long
list of them never has to be held for the backward pass.
"""

from __future__ import annotations

import torch

from .power_norm import unit


def over_templates(embeddings: torch.Tensor) -> torch.Tensor:
    """One unit vector per name from (..., templates, d)."""
    return unit(embeddings.mean(-2))


def synonym_weights(names: torch.Tensor, synonyms: torch.Tensor, tau: float = 1.0) -> torch.Tensor:
    """How much each synonym counts, (C, O), from unit vectors (C, d) and (C, O, d)."""
    return (torch.einsum("cd,cod->co", names, synonyms) / tau).softmax(-1)


def text_prototypes(
    names: torch.Tensor,
    synonyms: torch.Tensor | None = None,
    synonym_share: torch.Tensor | float = 0.5,
    tau: float = 1.0,
) -> torch.Tensor:
    """Unit prototypes (C, d).

    `names` is (C, templates, d), `synonyms` (C, O, templates, d) or None to use only the names.
    """
    own = over_templates(names)
    if synonyms is None:
        return own
    others = over_templates(synonyms.detach())
    weights = synonym_weights(own, others, tau)
    # The weighted mean keeps its length: synonyms that disagree among themselves count for less.
    mean = torch.einsum("co,cod->cd", weights, others)
    return unit(synonym_share * mean + (1 - synonym_share) * own)
