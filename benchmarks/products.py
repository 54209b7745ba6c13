"""What oneDNN's matrix products change: passes through a tower with and without them.

On processors where torch's own choice is as good the ratio is 1: nothing is switched there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import open_clip
import torch

from fsdil_bench.models.cpu_products import fast_products, onednn_is_better
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.lookup import describe_backbone

SECONDS = 2.0


def main() -> None:
    torch.set_num_threads(1)
    print("products by oneDNN:", "yes" if onednn_is_better() else "no, torch's choice stays")
    tiny = describe_backbone(load_registry().backbone("tiny-clip"), "tiny-clip").visual_copy()
    compare("tiny-clip", tiny, torch.randn(32, 3, 48, 48))
    large = open_clip.create_model("ViT-B-16-quickgelu").visual
    compare("ViT-B/16", large, torch.randn(8, 3, 224, 224))


def compare(name: str, tower: torch.nn.Module, images: torch.Tensor) -> None:
    def forward() -> None:
        with torch.no_grad():
            tower(images)

    def training() -> None:
        tower.zero_grad()
        tower(images).square().sum().backward()

    for what, work in (("forward", forward), ("training step", training)):
        plain = seconds(work)
        with fast_products():
            fast = seconds(work)
        print(
            f"{name:9} {what:13} {plain:6.3f} s, {fast:6.3f} s with them,"
            f" {plain / fast:.2f} times as fast"
        )


def seconds(work: Callable[[], None]) -> float:
    """Processor seconds of one call, the mean of many."""
    work()
    began, calls = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        work()
        calls += 1
    return (time.process_time() - began) / calls
