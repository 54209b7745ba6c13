"""A world small enough for unit tests: a random CLIP-like model and three domains of 8x8 images.

Everything else is the real harness: views, caches, loop and run folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from looping import run_loop

from fsdil_bench import (
    Backbone,
    Batch,
    Context,
    Domain,
    ImageSpec,
    Method,
    Samples,
    Stream,
    TrainDomain,
)
from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.plugins.options import resolve
from fsdil_bench.progress import Progress
from fsdil_bench.runs.loop import Outcome
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

CLASSES = ("apple", "boat", "cat", "door")
BASE, SHOTS, TESTS, DIM = 15, 2, 6, 16


class TinyClip(torch.nn.Module):
    """Random towers: pixels through a small MLP, text through the mean of its letters."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(7)
            self.visual = torch.nn.Sequential(
                torch.nn.Flatten(),
                torch.nn.Linear(3 * 8 * 8, 32),
                torch.nn.LayerNorm(32),
                torch.nn.GELU(),
                torch.nn.Linear(32, DIM, bias=False),
            )
            self.letters = torch.nn.EmbeddingBag(128, DIM)
        self.logit_scale = torch.nn.Parameter(torch.tensor(20.0).log())

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        return self.visual(images)

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.letters(tokens)


def tokenize(texts: list[str]) -> torch.Tensor:
    return torch.tensor([[ord(c) % 128 for c in text.ljust(40)[:40]] for text in texts])


def picture(sample_id: str) -> np.ndarray:
    """A colour for the class, a tint for the domain, noise from the id."""
    domain, _, label, _ = sample_id.split("/")
    noise = int.from_bytes(hashlib.sha256(sample_id.encode()).digest()[:8], "big")
    rng = np.random.default_rng(noise)
    colour = np.array([60, 120, 180]) * (1 + int(label)) % 256
    tint = np.array([0, 40, -40]) * int(domain)
    return np.clip(colour + tint + rng.normal(0, 50, (8, 8, 3)), 0, 255).astype(np.uint8)


def samples(domain: int, part: str, per_class: int) -> Samples:
    named = [(f"{domain}/{part}/{c}/{i}", c) for i in range(per_class) for c in range(len(CLASSES))]
    return Samples(tuple(n for n, _ in named), np.array([c for _, c in named]), picture)


class World:
    """One model, one stream, one cache."""

    def __init__(
        self, folder: Path, class_names: Sequence[str] = CLASSES, text: bool = True, seed: int = 3
    ) -> None:
        self.folder, self.seed = folder, seed
        domains = tuple(
            Domain(f"d{t}", samples(t, "train", SHOTS if t else BASE), samples(t, "test", TESTS))
            for t in range(3)
        )
        self.stream = Stream("tiny", tuple(class_names), domains)
        self.use("fake", TinyClip, "0" * 64, DIM, tokenize if text else None)

    def use(
        self,
        name: str,
        build: Callable[[], torch.nn.Module],
        weights_hash: str,
        embed_dim: int,
        tokenizer: Callable[[list[str]], torch.Tensor] | None,
    ) -> None:
        """Take this model as the backbone, and the stream's pictures as it sees them."""
        self.backbone = Backbone(
            name,
            build=build,
            weights_hash=weights_hash,
            image=ImageSpec(8),
            embed_dim=embed_dim,
            tokenizer=tokenizer,
        )
        texts = ArrayStore(self.folder / f"{name}-texts.sqlite")
        self.backbone.place(torch.device("cpu"), "fp32", texts)
        transform = build_transform("clip", self.backbone.image)
        self.pictures = Pictures(self.stream, self.backbone, transform, self.folder, Progress())

    def method(self, kind: type[Method], **config: Any) -> Any:
        resolved = resolve(kind.Config, config, owner=kind.__name__, see="")
        names = self.stream.class_names
        return kind(Context(resolved, self.backbone, names, (), self.seed))

    def domain(self, t: int, positions: Iterable[int] | None = None) -> TrainDomain:
        """Domain t, or some of its images in some order, as if it came in its turn."""
        train = self.stream.domains[t].train
        chosen = train if positions is None else train.subset(positions)
        seed = (self.seed, t)
        return TrainDomain(t, chosen, self.stream.class_names, self.pictures, seed, Progress())

    def learn(self, method: Any, upto: int = 3) -> Any:
        for t in range(upto):
            method.learn(self.domain(t))
        return method

    def features(self, t: int, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
        """Frozen features and labels for formulas written in NumPy."""
        chosen: Samples = getattr(self.stream.domains[t], part)
        return self.pictures.features(chosen).double().numpy(), chosen.labels

    def seen(self, upto: int = 3) -> tuple[np.ndarray, np.ndarray]:
        parts = [self.features(t) for t in range(upto)]
        return np.concatenate([z for z, _ in parts]), np.concatenate([y for _, y in parts])

    def test_batch(self) -> Batch:
        """The test images of all domains."""
        tests = [domain.test for domain in self.stream.domains]
        views = torch.cat([self.pictures.plain(test) for test in tests])
        images = self.pictures.transform.normalise(views, torch.device("cpu"))
        return Batch(images, torch.cat([self.pictures.features(test) for test in tests]))

    def predict(self, method: Any) -> list[int]:
        with torch.no_grad():
            return method.predict(self.test_batch()).tolist()

    def run(
        self, method: Any, name: str = "run", domains: int = 3, exemplar_free: bool = True
    ) -> Outcome:
        """The protocol; with the name of a run that was stopped, it continues that run."""
        folder = RunFolder(self.folder / name)
        folder.path.mkdir(exist_ok=True)
        stream = replace(self.stream, domains=self.stream.domains[:domains])
        return run_loop(
            name, method, stream, self.pictures, self.seed, exemplar_free, folder, Progress()
        )


def copied(method: Any) -> dict[str, torch.Tensor]:
    """The state of a method as it is now."""
    return {name: value.clone() for name, value in method.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
