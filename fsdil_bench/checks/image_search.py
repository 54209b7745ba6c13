"""Searching tensors of any shape for stored images and features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F

# Above this cosine two rows are the same except for scale and rounding. Bytes for pixels cost 1e-5,
# bfloat16 costs 2e-6; the mean of two images is far below.
_SAME_IMAGE = 1 - 3e-4
_SAME_FEATURE = 1 - 5e-5
_CHUNK = 8192  # rows compared at once


class ImageSearch:
    """Images (n, 3, h, w) and features (n, d) to look for."""

    def __init__(self, images: Sequence[torch.Tensor], features: Sequence[torch.Tensor]) -> None:
        pixels = torch.cat(list(images)).float() if images else torch.zeros(0, 3, 1, 1)
        self._shape = pixels.shape[1:]
        self._images = _by_channel(pixels.flatten(2))
        rows = torch.cat(list(features)).float() if features else torch.zeros(0, 1)
        self._features = F.normalize(rows, dim=1)

    def __len__(self) -> int:
        return len(self._images) + len(self._features)

    def found_in(self, tensor: torch.Tensor) -> str:
        """What was found in the tensor; empty if nothing was."""
        if not tensor.dtype.is_floating_point and tensor.dtype != torch.uint8:
            tensor = tensor.to(torch.float32) if not tensor.is_complex() else tensor.real
        tensor = tensor.detach().cpu().float()
        if len(self._images) and self._holds_image(tensor):
            return "a training or test image"
        if len(self._features) and self._holds_feature(tensor):
            return "the frozen feature of an image"
        return ""

    def _holds_image(self, tensor: torch.Tensor) -> bool:
        channels, height, width = self._shape
        for rows in _rows(tensor, channels * height * width):
            first = rows.view(-1, channels, height * width)
            last = rows.view(-1, height * width, channels).mT
            for view in (first, last):
                if _nearest(_by_channel(view), self._images) > _SAME_IMAGE:
                    return True
        return False

    def _holds_feature(self, tensor: torch.Tensor) -> bool:
        return any(
            _nearest(F.normalize(rows, dim=1), self._features) > _SAME_FEATURE
            for rows in _rows(tensor, self._features.shape[1])
        )


def _rows(tensor: torch.Tensor, size: int) -> Iterator[torch.Tensor]:
    """The numbers of a tensor as rows of `size`: in order, and at both ends of its own rows."""
    flat = tensor.reshape(-1)
    whole = len(flat) // size
    if not whole:
        return
    yield from flat[: whole * size].view(whole, size).split(_CHUNK)
    last = tensor.shape[-1]
    if last > size and last % size:
        own = tensor.reshape(-1, last)
        yield from own[:, :size].contiguous().split(_CHUNK)
        yield from own[:, -size:].contiguous().split(_CHUNK)


def _by_channel(pixels: torch.Tensor) -> torch.Tensor:
    """Images (n, channels, pixels) without what scaling and shifting a channel changes."""
    centred = pixels - pixels.mean(2, keepdim=True)
    return F.normalize(F.normalize(centred, dim=2).flatten(1), dim=1)


def _nearest(rows: torch.Tensor, known: torch.Tensor) -> float:
    # Of either sign: the negative of an image shows it as well.
    return float((rows.nan_to_num() @ known.T).abs().amax())
