"""What oneDNN's matrix products change: passes through a tower with and without them.

On processors where torch's own choice is as good the ratio is 1: nothing is switched there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from fsdil_bench.models.cpu_products import fast_products, onednn_is_better
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.lookup import describe_backbone

BATCH = 32
SECONDS = 2.0


def main() -> None:
    torch.set_num_threads(1)
    backbone = describe_backbone(load_registry().backbone("tiny-clip"), "tiny-clip")
    tower = backbone.visual_copy()
    images = torch.randn(BATCH, 3, backbone.image.size, backbone.image.size)

    def forward() -> None:
        with torch.no_grad():
            tower(images)

    def training() -> None:
        tower.zero_grad()
        tower(images).square().sum().backward()

    print("products by oneDNN:", "yes" if onednn_is_better() else "no, torch's choice stays")
    for name, work in (("forward", forward), ("training step", training)):
        plain = seconds(work)
        with fast_products():
            fast = seconds(work)
        print(
            f"{name:15} {1e3 * plain:6.1f} ms, {1e3 * fast:6.1f} ms with them: {plain / fast:.2f}"
        )


def seconds(work: Callable[[], None]) -> float:
    """Processor seconds of one call, the mean of many."""
    work()
    began, calls = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        work()
        calls += 1
    return (time.process_time() - began) / calls
