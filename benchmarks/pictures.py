"""Whether drawing keeps up with the image tower, and what kept pictures gain."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

import fsdil_bench
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures


def main() -> None:
    from fsdil_bench.plugins.descriptors import load_factory

    registry = load_registry()
    backbone = load_factory(registry.backbone("tiny-clip").factory, "tiny-clip")()
    stream = fsdil_bench.load_stream("drawn-1shot")
    transform = build_transform(stream.transform, backbone.image)

    def rate(count: int, work: object) -> float:
        began = time.perf_counter()
        work()  # type: ignore[operator]
        return count / (time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as folder:
        total = 0.0
        for domain in stream.domains:
            pictures = Pictures(stream, backbone, transform, Path(folder), Progress())
            part = domain.test.subset(range(0, len(domain.test), 3))
            drawn = rate(len(part), lambda p=pictures, s=part: p.plain(s))
            again = Pictures(stream, backbone, transform, Path(folder), Progress())
            kept = rate(len(part), lambda p=again, s=part: p.plain(s))
            print(
                f"{domain.name:<10} drawn {drawn:6.0f} images/s, kept on disk {kept:7.0f} images/s"
            )
            total += 1 / drawn
        pixels = torch.zeros(480, 3, backbone.image.size, backbone.image.size)
        backbone.encode_image(pixels[:32])
        tower = rate(480, lambda: backbone.encode_image(pixels))
    mean = len(stream.domains) / total
    print(
        f"drawing {mean:.0f} images/s, image tower {tower:.0f} images/s: ratio {mean / tower:.2f}"
    )
