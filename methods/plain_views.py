"""The plain views of a domain, some hundred at a time, for passes that train nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fsdil_bench import TrainDomain

_TOGETHER = 256


def plain_views(
    domain: TrainDomain, positions: torch.Tensor | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Positions of images and the images, (n, 3, size, size): of the whole domain or a part."""
    chosen = torch.arange(len(domain)) if positions is None else positions
    for part in chosen.split(_TOGETHER):
        yield part, domain.take(part.tolist()).images
