"""Prototypes that grow where they are needed: a class gets another one if a domain needs it.

FSHIL (CVPR 2026), self-expanding prototype classifier. With the prototypes p_cj of class c

    logit_c = max over j of cos(f, p_cj),

and a class gets the mean of its new images as one more prototype if

    accuracy on them  <  max( (1 - drop) mean accuracy of the class in earlier domains, least ).

Prototypes are kept as those of `domain_prototypes.py`: one row per class and domain, with zeros
where a class has none. An accuracy is judged before images enter a prototype, or with every image
left out of its own: after, it would be too good.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..domain_prototypes import similarity


def needs_more(
    accuracy: torch.Tensor, usual: torch.Tensor, drop: float, least: float
) -> torch.Tensor:
    """Which classes get another prototype, (C,)."""
    return accuracy < ((1 - drop) * usual).clamp(min=least)


def per_class(right: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """The share of right answers among the images of every class; 0 where there are none."""
    counts = labels.bincount(minlength=classes)
    return labels[right].bincount(minlength=classes) / counts.clamp(min=1)


def accuracy_left_out(
    features: torch.Tensor, labels: torch.Tensor, earlier: torch.Tensor, sums: torch.Tensor
) -> torch.Tensor:
    """Accuracy of every class with its images left out of their own prototype, (C,).

    `earlier` are prototypes (T, C, d), `sums` those of this domain (C, d): sums of its unit
    features, with zeros for classes without a new prototype.
    """
    found = similarity(features, torch.cat([earlier, sums[None]]))
    own = labels[:, None]
    best = similarity(features, earlier).gather(1, own) if len(earlier) else found.new_full((), -1)
    rest = sums[labels].double() - features.double()
    alone = labels.bincount(minlength=len(sums))[labels] == 1
    missing = alone | ~sums[labels].any(-1)
    others = F.cosine_similarity(features.double(), rest, dim=-1).masked_fill(missing, -1.0)
    found = found.scatter(1, own, torch.maximum(best.expand_as(own), others[:, None]))
    return per_class(found.argmax(1) == labels, labels, len(sums))
