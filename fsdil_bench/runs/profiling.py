"""`--profile`: where the time of a run goes, by torch's profiler.

A trace of a whole run would not fit on a disk. So the first batches of every phase are recorded:
the first one is left out, because it warms things up, and the next `_RECORDED` are kept. Every
phase leaves a trace for a viewer (chrome://tracing, ui.perfetto.dev) and a table of its operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.cache.folder import file_name_part
from fsdil_bench.progress import Progress

_RECORDED = 6  # batches
_OPERATIONS = 25  # rows of a table
FOLDER = "profile"


class ProfiledProgress(Progress):
    """Progress that knows when a batch is over, and so what to record."""

    def __init__(self, inner: Progress, folder: Path, device: torch.device) -> None:
        self._inner = inner
        self._folder = folder / FOLDER
        self._device = device
        self._seen: set[str] = set()
        self._profiler: torch.profiler.profile | None = None
        self._batches = 0  # since it began

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Record the first phase of this name, unless it is inside of another."""
        with self._inner.phase(name, total):
            if name in self._seen or self._profiler is not None:
                yield
                return
            self._seen.add(name)
            self._batches = 0
            with self._make_profiler(name) as self._profiler:
                try:
                    yield
                finally:
                    self._profiler = None

    def advance(self, amount: int = 1) -> None:
        """A batch is over."""
        self._inner.advance(amount)
        if self._profiler is not None:
            self._batches += 1
            self._profiler.step()

    def say(self, text: str) -> None:
        """Pass it on."""
        self._inner.say(text)

    def _make_profiler(self, phase: str) -> torch.profiler.profile:
        on_gpu = self._device.type == "cuda"
        activities = [torch.profiler.ProfilerActivity.CPU]
        if on_gpu:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        name = file_name_part(phase.replace(": ", "-").replace(" ", "-"))

        def keep(profiler: torch.profiler.profile) -> None:
            if self._batches < 2:
                return  # the only one was to warm up
            self._folder.mkdir(parents=True, exist_ok=True)
            profiler.export_chrome_trace(str(self._folder / f"{name}.trace.json.gz"))
            by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
            table = profiler.key_averages().table(sort_by=by, row_limit=_OPERATIONS)
            (self._folder / f"{name}.txt").write_text(table, encoding="utf-8")

        return torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=_RECORDED, repeat=1),
            on_trace_ready=keep,
        )


def write_phases(folder: Path, domains: list[str], costs: list[dict[str, Any]]) -> Path:
    """A table of seconds and images of every phase of every domain; where it is."""
    lines = ["| domain | phase | seconds | images | images/s |", "|:--|:--|--:|--:|--:|"]
    for domain, cost in zip(domains, costs, strict=False):
        for phase, seconds in cost["seconds"].items():
            images = cost["images"].get(phase, 0)
            rate = f"{images / seconds:.1f}" if images and seconds else ""
            lines.append(f"| {domain} | {phase} | {seconds:.2f} | {images or ''} | {rate} |")
    place = folder / FOLDER / "phases.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place
