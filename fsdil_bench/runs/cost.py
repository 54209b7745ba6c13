"""What a run costs: seconds and images per phase, peak memory, parameters, bytes of state."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.models.device import synchronise
from fsdil_bench.system.posix import require_posix

require_posix("a run")
import resource  # noqa: E402

_ON_HOST = ("images",)  # phases in which only the CPU works, often while a GPU does too
_PEAK_SINCE_RESET = "5"  # what Linux has to be told (man 5 proc, clear_refs)


@dataclass
class Meter:
    """Seconds and images of each phase of the protocol.

    Phases may nest; time spent in an inner phase counts for the inner one alone, so that a method
    whose `learn` asks for frozen features is not charged for computing them. A GPU works behind
    the CPU's back: a phase is over when the `device` has done its work, too.
    """

    device: torch.device | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    images: dict[str, int] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a stretch of work, adding to the phase `name`."""
        self._settle(name)
        self._open.append(name)
        try:
            yield
        finally:
            self._settle(name)
            self._open.pop()

    def count(self, name: str, images: int) -> None:
        """Note that `images` passed through phase `name`."""
        self.images[name] = self.images.get(name, 0) + images

    def move(self, name: str, to: dict[str, float]) -> None:
        """Charge seconds that were charged to `name` to other phases instead."""
        self._settle()
        for other, seconds in to.items():
            self.seconds[other] = self.seconds.get(other, 0.0) + seconds
            self.seconds[name] = self.seconds.get(name, 0.0) - seconds

    def take(self) -> dict[str, dict[str, Any]]:
        """What was measured since the last call, as plain JSON types."""
        self._settle()
        taken: dict[str, dict[str, Any]] = {
            "seconds": {name: round(value, 4) for name, value in sorted(self.seconds.items())},
            "images": dict(sorted(self.images.items())),
        }
        self.seconds, self.images = {}, {}
        return taken

    def _settle(self, phase: str = "") -> None:
        """Charge the time since the last change to the innermost phase; `phase` begins or ends."""
        if phase not in _ON_HOST:
            synchronise(self.device)
        now = time.perf_counter()
        if self._open:
            name = self._open[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


def total(parts: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The sum of what several `Meter.take` gave."""
    summed: dict[str, dict[str, Any]] = {"seconds": {}, "images": {}}
    for part in parts:
        for kind, values in part.items():
            for name, value in values.items():
                summed[kind][name] = round(summed[kind].get(name, 0) + value, 4)
    return summed


def peak_memory_bytes(device: torch.device) -> int:
    """The most memory held at a time since `reset_peak_memory`: on a CUDA device by tensors,
    elsewhere by the process in RAM. Where that cannot be reset, since the process began."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def reset_peak_memory(device: torch.device) -> None:
    """Forget what earlier runs of this process have held and given back."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):  # not Linux, or not allowed
        Path("/proc/self/clear_refs").write_text(_PEAK_SINCE_RESET, encoding="ascii")


def state_bytes(state: dict[str, torch.Tensor]) -> int:
    """The size of what a method remembers."""
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values())
