"""Whether reading and augmenting JPEG files keeps up with a model, without and with workers.

Two cases: training tiny-clip's image tower on augmented views, and frozen features by a ViT-B/16
(with random weights: the speed is the same). "Waits" is the part of the time for which the model
has no images.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from fsdil_bench import Backbone, Domain, ImageSpec, Samples, Stream, TrainDomain
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.models.device import choose
from fsdil_bench.plugins.descriptors import load_factory
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.system.prefetch import default_workers

FILES = 128
ROUNDS = 2

Step = Callable[[torch.Tensor], torch.Tensor]


def main() -> None:
    device, precision = choose("auto", "auto")
    with tempfile.TemporaryDirectory() as folder:
        samples = jpeg_files(Path(folder))
        small, large = tiny_clip(), large_clip()
        for backbone in (small, large):
            backbone.place(device, precision, None)
        compare("training tiny-clip", small, training_step(small), samples, 64, train=True)
        part = samples.subset(range(16))  # enough for a model that takes long on a CPU
        compare("features by ViT-B/16", large, inference_step(large), part, 4, train=False)


def compare(
    name: str, backbone: Backbone, step: Step, samples: Samples, batch_size: int, *, train: bool
) -> None:
    """Print the speed of the model alone, and of the loader and both for numbers of workers."""
    size = backbone.image.size
    pixels = torch.rand(batch_size, 3, size, size, device=backbone.device)
    finish(step(pixels))
    model = batch_size / best(lambda: finish(step(pixels)))
    print(f"{name} on {backbone.device}, {size} pixels: the model alone {model:.0f} images/s")

    def go_over(workers: int, work: Step | None) -> float:
        """Read all images from their files; returns the part of the time spent waiting for them."""
        stream = Stream("jpeg", ("a", "b"), (Domain("d", samples, samples),))
        transform = build_transform(stream.transform, backbone.image)
        with tempfile.TemporaryDirectory() as cache:
            pictures = Pictures(
                stream, backbone, transform, Path(cache), Progress(), workers=workers
            )
            domain = TrainDomain(0, samples, stream.class_names, pictures, (0, 0), Progress())
            began = time.perf_counter()
            for batch in domain.batches(batch_size, augment=train):
                if work is not None:
                    finish(work(batch.images))
            seconds = time.perf_counter() - began
            pictures.close()
        return pictures.meter.seconds["images"] / seconds

    for workers in (0, default_workers()):
        loader = len(samples) / best(lambda n=workers: go_over(n, None))
        waits = go_over(workers, step)
        print(
            f"  {workers} workers: loader {loader:5.0f} images/s, {loader / model:5.1f} times the "
            f"model's; together the model waits {100 * waits:.0f} % of the time"
        )


def training_step(backbone: Backbone) -> Step:
    """A forward and a backward pass through a copy of the image tower."""
    tower = backbone.visual_copy()

    def step(pixels: torch.Tensor) -> torch.Tensor:
        tower.zero_grad()
        with backbone.autocast():
            loss = tower(pixels).float().square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    return step


def inference_step(backbone: Backbone) -> Step:
    """A forward pass, without the padding to a fixed batch size that features get."""

    @torch.no_grad()
    def step(pixels: torch.Tensor) -> torch.Tensor:
        with backbone.autocast():
            embeddings: torch.Tensor = backbone.model.encode_image(pixels)  # type: ignore[operator]
        return embeddings

    return step


def tiny_clip() -> Backbone:
    backbone: Backbone = load_factory(load_registry().backbone("tiny-clip").factory, "tiny-clip")()
    return backbone


def large_clip() -> Backbone:
    from open_clip import create_model

    def build() -> torch.nn.Module:
        return create_model("ViT-B-16-quickgelu", pretrained=None)

    return Backbone(
        "ViT-B-16", build=build, weights_hash="random", image=ImageSpec(224), embed_dim=512
    )


def jpeg_files(folder: Path) -> Samples:
    """Files of 400 x 300 pixels: coloured spots with noise, so that they decode like photos."""
    rng = np.random.default_rng(0)
    for i in range(FILES):
        spots = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        picture = np.asarray(spots.resize((400, 300), Image.Resampling.BICUBIC)).astype(np.int16)
        picture = picture + rng.integers(-12, 13, picture.shape)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / f"{i}.jpg", quality=90)

    def load(name: str) -> np.ndarray:
        with Image.open(folder / name) as file:
            return np.asarray(file.convert("RGB"))

    return Samples(tuple(f"{i}.jpg" for i in range(FILES)), np.arange(FILES) % 2, load)


def finish(result: torch.Tensor) -> None:
    """Wait for a GPU."""
    result.flatten()[0].item()


def best(work: Callable[[], object]) -> float:
    """The shortest of a few rounds: other work on the machine only makes it longer."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
