"""How many images a CVLC run sends through the image tower, counted on the shapes of CORe50.

A whole run of the harness and the method: 8 sessions, 50 classes, one shot. Only the towers are
made up: they note what they are given and hand out a few numbers of every image. So this counts,
and computes next to nothing.

The least that a run can do is one pass for every distinct pair of view and weights. Beside it stand
the passes of this run, padding included, and what they would have been if every part of a test
batch were padded to 256 images.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from fsdil_bench import Backbone, Context, Domain, ImageSpec, Samples, Stream
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.progress import Progress
from fsdil_bench.runs import evaluation
from fsdil_bench.runs.executor import InProcess
from fsdil_bench.runs.loop import Loop
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

SIZE, WIDTH = 8, 16
BATCH = 256  # what a CUDA device takes by default


@dataclass
class Counts:
    """Images through the tower: in training, and without (`passes`, with how many are distinct).

    `padded` is what the passes without training would be if each were padded to `BATCH`.
    """

    training: int = 0
    passes: int = 0
    padded: int = 0
    pairs: set[tuple[str, bytes]] = field(default_factory=set)
    grouped: bool = False

    @property
    def distinct(self) -> int:
        return len(self.pairs)

    def see(self, images: torch.Tensor, weights: str) -> None:
        """Note a pass."""
        if torch.is_grad_enabled():
            self.training += len(images)
            return
        self.passes += len(images)
        rows = images.flatten(1).numpy()
        self.pairs.update(
            (weights, row.tobytes()) for row in rows if row.any()
        )  # zeros are padding


def count(*, domains: int, classes: int, base: int, tests: int, least_views: int) -> Counts:
    """The passes of a run with `base` and `tests` images per class in a domain, and one shot."""
    from fsdil_methods.cvlc import method as cvlc
    from fsdil_methods.cvlc.config import Config

    counts = Counts()
    backbone = _backbone(counts)
    stream = _stream(domains, classes, base, tests)
    config = Config(
        text=False, reservation=False, base_epochs=1, epochs=1, least_views=least_views,
        shared_blocks=1,
    )  # fmt: skip

    def encode(visual: Any, images: torch.Tensor, adapters: Sequence[Any] = ()) -> torch.Tensor:
        tensors = list(_tensors(list(adapters)))
        counts.see(images, _fingerprint(tensors))
        # They are trained, too, or the weights would stay the same from domain to domain.
        return _numbers(images) + 1e-4 * sum(tensor.sum() for tensor in tensors)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(cvlc, "encode_image", encode):
        transform = build_transform("core50", backbone.image)
        pictures = Pictures(stream, backbone, transform, Path(folder), Progress())
        build = partial(cvlc.CVLC, Context(config, backbone, stream.class_names, (), 0))
        runs = RunFolder(Path(folder))
        with mock.patch.object(evaluation, "by_domain", _watched(counts, evaluation.by_domain)):
            executor = InProcess("cvlc", build, 0, backbone.device)
            Loop("cvlc", executor, stream, pictures, 0, True, runs, Progress()).run()
        pictures.close()
    return counts


def _backbone(counts: Counts) -> Backbone:
    from open_clip.model import CLIP

    def build() -> torch.nn.Module:
        vision = {"image_size": SIZE, "patch_size": SIZE, "width": WIDTH, "layers": 2}
        text = {"context_length": 4, "vocab_size": 4, "width": WIDTH, "heads": 1, "layers": 2}
        model = CLIP(WIDTH, vision | {"head_width": WIDTH}, text)

        def encode(images: torch.Tensor) -> torch.Tensor:
            counts.see(images, "frozen")
            return _numbers(images)

        model.encode_image = encode
        return model

    backbone = Backbone(
        "counting", build=build, weights_hash="0", image=ImageSpec(SIZE), embed_dim=WIDTH
    )
    backbone.place(torch.device("cpu"), "fp32", None, batch_size=BATCH)
    for name in ("run_with", "encode_image", "frozen_features"):
        setattr(backbone, name, _noted(counts, getattr(backbone, name)))
    return backbone


def _noted(counts: Counts, function: Any) -> Any:
    """Add up what a call would have cost with padding; those of routed parts are known already."""

    def call(*given: Any) -> Any:
        if not counts.grouped:
            images = next(each for each in given if torch.is_tensor(each))
            counts.padded += _padded(len(images))
        return function(*given)

    return call


def _watched(counts: Counts, by_domain: Any) -> Any:
    """Also see how many images of each domain there are in a test batch."""

    def call(routed: Iterator[Any], full: int) -> Iterator[Any]:
        def seen() -> Iterator[Any]:
            for rows, batch, domains in routed:
                counts.padded += sum(map(_padded, np.bincount(domains)))
                yield rows, batch, domains

        for part in by_domain(seen(), full):
            counts.grouped = True
            yield part
            counts.grouped = False

    return call


def _padded(images: int) -> int:
    return -(-images // BATCH) * BATCH


def _numbers(images: torch.Tensor) -> torch.Tensor:
    """Colour by colour, the brightness of a few places: enough to recognise the domains."""
    return images.flatten(1)[:, ::12].contiguous()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in a value made of adapters."""
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif dataclasses.is_dataclass(value):
        yield from _tensors(list(vars(value).values()))


def _fingerprint(tensors: Sequence[torch.Tensor]) -> str:
    parts = [tensor.detach().numpy().tobytes() for tensor in tensors]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _stream(domains: int, classes: int, base: int, tests: int) -> Stream:
    def samples(domain: int, part: str, per_class: int) -> Samples:
        labels = np.repeat(np.arange(classes), per_class)
        ids = tuple(f"{domain} {part} {i}" for i in range(len(labels)))
        return Samples(ids, labels, _picture, keys=ids)

    return Stream(
        "counted",
        tuple(f"class {i}" for i in range(classes)),
        tuple(
            Domain(f"s{t}", samples(t, "train", base if t == 0 else 1), samples(t, "test", tests))
            for t in range(domains)
        ),
        transform="core50",
    )


def _picture(sample_id: str) -> np.ndarray:
    """Noise, with a different brightness in each domain."""
    domain, part, number = sample_id.split()
    seed = (int(domain), int(number), part == "test")
    noise = np.random.default_rng(seed).integers(0, 60, (SIZE, SIZE, 3))
    bright = np.array([20 * int(domain), 160 - 20 * int(domain), 80])
    return (noise + bright).clip(0, 255).astype(np.uint8)


def report(counts: Counts) -> None:
    rows = [
        ("distinct pairs of view and weights", counts.distinct),
        ("passes", counts.passes),
        (f"passes, every part padded to {BATCH}", counts.padded),
    ]
    for name, number in rows:
        print(f"{name:46}{number:10,}{number / counts.distinct:8.2f}")
    print(f"{'passes in training (one epoch), never padded':46}{counts.training:10,}")


def main() -> None:
    counts = count(domains=8, classes=50, base=240, tests=60, least_views=100)
    report(counts)
    assert counts.passes <= 1.1 * counts.distinct


if __name__ == "__main__":
    main()
