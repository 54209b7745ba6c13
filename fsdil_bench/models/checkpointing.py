"""Whether a training step keeps the activations of its blocks or computes them a second time.

A backward pass needs what the forward pass computed. With checkpointing only the inputs of the
blocks are kept and each block is run again when its turn comes: a third more work in an eighteenth
of the memory, and the same results. So it is used where a step would not fit.

What a step keeps is proportional to tokens x width x blocks. The factors were counted with hooks on
saved tensors in ViT-B/16, and a test counts them in a small tower: 18 numbers in a frozen tower
with trained additions, images and texts alike, and 21 where all weights are trained. Where
attention is two whole products (`cpu_products`) they are 15 and 23, and for each head how much
every token looks at every other one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.adapters import tower_blocks, tower_shape
from fsdil_bench.errors import RequestError

from .cpu_products import onednn_is_better

CHOICES = ("auto", "on", "off")

#: Numbers for every token, block and unit of width: of a frozen tower, of one that is trained.
_KEPT, _KEPT_BY_WHOLE_ATTENTION = (18, 21), (15, 23)
_TEXT = 16  # tokens of a text, more than most names have
_BYTES = 4  # of a number; mixed precision keeps fewer, but copies as well
_SHARE = 0.5  # of the free memory that a step may fill: gradients and the optimizer need some, too
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


class Checkpointing:
    """The choice for one run on one device; what `auto` finds is remembered."""

    def __init__(self, choice: str, device: torch.device) -> None:
        if choice not in CHOICES:
            raise RequestError(
                f"checkpointing cannot be '{choice}'", f"Use {', '.join(CHOICES[:-1])} or off."
            )
        self.choice = choice
        self._device = device
        self._found: dict[int, bool] = {}

    def wanted(self, needed: int) -> bool:
        """Whether a step that would keep `needed` bytes uses checkpoints."""
        if self.choice != "auto":
            return self.choice == "on"
        if needed not in self._found:
            free = free_memory(self._device)
            self._found[needed] = free is not None and needed > _SHARE * free
        return self._found[needed]


def kept_bytes(
    model: torch.nn.Module, *, images: int = 0, text_tokens: int = 0, all_weights: bool = False
) -> int:
    """What a training step keeps without checkpoints; 0 for a tower that is not known."""
    total = 0
    with suppress(RequestError):  # not a vision transformer
        visual: Any = getattr(model, "visual", None)
        tower_blocks(visual, "positional_embedding")
        tokens = len(visual.positional_embedding)
        total += images * tokens * _for_a_token(visual, tokens, all_weights)
    with suppress(RequestError):
        if text_tokens:
            total += text_tokens * _for_a_token(model, _TEXT, all_weights)
    return _BYTES * total


def _for_a_token(tower: Any, tokens: int, all_weights: bool) -> int:
    """Numbers that are kept for one of so many tokens that look at each other."""
    shape = tower_shape(tower)
    if not onednn_is_better():
        return shape.blocks * shape.width * _KEPT[all_weights]
    return shape.blocks * (
        shape.width * _KEPT_BY_WHOLE_ATTENTION[all_weights] + shape.heads * tokens
    )


def free_memory(device: torch.device) -> int | None:
    """Bytes that this process could still take on the device; None if nobody knows."""
    if device.type == "cuda":
        own = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + own
    found = []
    with suppress(OSError, ValueError, IndexError):
        text = _MEMINFO.read_text(encoding="ascii")
        found.append(1024 * int(text.split("MemAvailable:")[1].split()[0]))
    with suppress(OSError, ValueError):  # what a container may use
        limit, used = (
            int((_CGROUP / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        found.append(limit - used)
    return max(0, min(found)) if found else None
