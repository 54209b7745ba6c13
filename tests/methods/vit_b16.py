"""CLIP ViT-B/16 with random weights, and a stream of noise to learn from: what sizes depend on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import torch
from looping import run_loop

from fsdil_bench import (
    Backbone,
    Context,
    Domain,
    ImageSpec,
    Method,
    Samples,
    Stream,
)
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.progress import Progress
from fsdil_bench.runs.loop import Outcome
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

MODEL = "ViT-B-16-quickgelu"


def random_vit_b16(*, text: bool) -> Backbone:
    torch.manual_seed(0)
    return Backbone(
        MODEL,
        build=lambda: open_clip.create_model(MODEL, load_weights=False),
        weights_hash="random",
        image=ImageSpec(224),
        embed_dim=512,
        tokenizer=open_clip.get_tokenizer(MODEL) if text else None,
    )


def learn_two_domains(
    kind: type[Method],
    config: Any,
    backbone: Backbone,
    folder: Path,
    names: Sequence[str],
    synonyms: Sequence[Sequence[str]] = (),
) -> tuple[Method, Outcome, RunFolder]:
    """Two base images and one later image of every class; the state after each domain is kept."""
    domains = tuple(
        Domain(
            f"d{t}",
            _samples(f"{t}/train", len(names), 1 if t else 2),
            _samples(f"{t}/test", len(names), 1),
        )
        for t in range(2)
    )
    stream = Stream("random", tuple(names), domains, tuple(map(tuple, synonyms)))
    transform = build_transform("clip", backbone.image)
    pictures = Pictures(stream, backbone, transform, folder, Progress())
    method = kind(Context(config, backbone, stream.class_names, stream.synonyms, 0))
    runs = RunFolder(folder / "run")
    runs.path.mkdir()
    parts = (stream, pictures, 0, True, runs, Progress())
    return method, run_loop("it", method, *parts, keep_checkpoints=True), runs


def _samples(place: str, classes: int, each: int) -> Samples:
    ids = tuple(f"{place}/{c}/{i}" for c in range(classes) for i in range(each))
    return Samples(ids, np.repeat(np.arange(classes), each), _noise)


def _noise(sample_id: str) -> np.ndarray:
    noise = np.random.default_rng(sum(sample_id.encode()))
    return noise.integers(0, 256, (240, 260, 3)).astype(np.uint8)
