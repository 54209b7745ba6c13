"""Forward passes in batches that fit into memory.

A batch size is asked for or suits the device. Where memory runs out, it is halved for the rest of
the run, and the user is told once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from fsdil_bench.errors import RequestError

_CUDA_SIZE, _OTHER_SIZE = 256, 32


class Batches:
    """How many rows go through a tower at a time on one device."""

    def __init__(self, device: torch.device, size: int | None = None) -> None:
        self.device = device
        self.size = size or (_CUDA_SIZE if device.type == "cuda" else _OTHER_SIZE)
        self._too_large: int | None = None  # the size that did not fit, until the user is told

    def run(
        self,
        forward: Callable[[slice, int], torch.Tensor],
        count: int,
        say: Callable[[str], None],
        most: int | None = None,
    ) -> torch.Tensor:
        """The outputs for `count` rows; there is one pass even if there are no rows.

        `forward` takes the rows and the batch size, which is at most `most`.
        """
        return torch.cat(list(self._passes(forward, count, say, most)))

    def _passes(
        self,
        forward: Callable[[slice, int], torch.Tensor],
        count: int,
        say: Callable[[str], None],
        most: int | None,
    ) -> Iterator[torch.Tensor]:
        start = 0
        while True:
            size = min(self.size, most or self.size)
            found: torch.Tensor | None = None
            with contextlib.suppress(torch.OutOfMemoryError):
                found = forward(slice(start, min(start + size, count)), size)
            # Only here, after the error was handled, does a failed pass hold no memory any more.
            if found is None:
                self._halve(size)
                continue
            if self._too_large is not None:
                say(
                    f"warning: {self._too_large} images at a time do not fit into the memory of"
                    f" {self.device}; continuing with {size} (--batch-size {size})"
                )
                self._too_large = None
            yield found
            start += size
            if start >= count:
                return

    def _halve(self, size: int) -> None:
        if size == 1:
            raise RequestError(
                f"a single image does not fit into the memory of {self.device}",
                "Free some of it (nvidia-smi shows which processes use it), use --device cpu or a "
                "smaller --backbone.",
            )
        self._too_large = self._too_large or size
        self.size = size // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """At least `count` rows: zeros are added where some are missing."""
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, max(0, count - len(rows))))
