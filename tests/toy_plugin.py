"""A plugin file for the tests: a toy backbone, a toy stream and methods that behave or do not.

Everything is small enough that a whole run takes a fraction of a second after importing torch.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import torch

from fsdil_bench import (
    Backbone,
    BackboneInfo,
    Domain,
    ImageSpec,
    Method,
    MethodInfo,
    RouterMethod,
    Samples,
    ScenarioInfo,
    Stream,
    hookimpl,
)

CLASSES = ("red", "green", "blue")
SIZE = 8


class ToyModel(torch.nn.Module):
    """Two linear towers with open_clip's interface."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.visual = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIZE * SIZE, 16))
        self.words = torch.nn.Embedding(64, 16)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
        self.logit_scale = torch.nn.Parameter(torch.tensor(2.0))

    def encode_image(self, pixels):
        return self.visual(pixels)

    def encode_text(self, tokens):
        return self.words(tokens).sum(1)


def tokenize(texts):
    rows = [[hashlib.md5(word.encode()).digest()[0] % 64 for word in t.split()][:6] for t in texts]
    return torch.tensor([row + [0] * (6 - len(row)) for row in rows])


def build_backbone():
    return Backbone(
        "toy-clip",
        build=ToyModel,
        weights_hash="toy",
        image=ImageSpec(SIZE),
        embed_dim=16,
        tokenizer=tokenize,
    )


def build_mute():
    return Backbone(
        "mute-clip", build=ToyModel, weights_hash="toy", image=ImageSpec(SIZE), embed_dim=16
    )


def load(sample_id: str) -> np.ndarray:
    """A noisy patch of the class colour; the domain sets the brightness."""
    domain, _, label, _ = sample_id.split("/")
    seed = int.from_bytes(hashlib.blake2b(sample_id.encode(), digest_size=4).digest(), "big")
    noise = np.random.default_rng(seed).integers(0, 120, (SIZE, SIZE, 3))
    noise[:, :, int(label)] += 60 + 20 * int(domain[1:])
    return noise.clip(0, 255).astype(np.uint8)


def samples(domain: str, split: str, count: int) -> Samples:
    pairs = [(c, i) for c in range(len(CLASSES)) for i in range(count)]
    ids = tuple(f"{domain}/{split}/{c}/{i}" for c, i in pairs)
    return Samples(ids, np.array([c for c, _ in pairs]), load)


def build_stream(request=None, domains=4):
    return Stream(
        name="toy",
        class_names=CLASSES,
        synonyms=(("crimson",), ("verdant",), ("azure",)),
        domains=tuple(
            Domain(f"d{t}", samples(f"d{t}", "train", 12), samples(f"d{t}", "test", 10 + t))
            for t in range(domains)
        ),
    )


class Means(Method):
    """Nearest class mean, kept honest and short; noise makes the seed matter."""

    inputs = frozenset({"features"})

    def __init__(self, context):
        super().__init__(context)
        self.sums = torch.zeros(
            len(context.class_names), context.backbone.embed_dim, device=context.device
        )

    def learn(self, domain):
        noise = torch.randn(
            self.sums.shape, generator=self.context.generator("n", domain.index)
        ).to(self.sums.device)
        self.sums.index_add_(0, domain.labels, domain.features())
        self.sums += 0.3 * noise

    def predict(self, batch):
        return (batch.features @ self.sums.T).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"].clone()

    def diagnostics(self):
        return {"largest sum": float(self.sums.max())}


class Slow(Means):
    """Announces each domain in a file, then waits in the one named by the environment."""

    def learn(self, domain):
        super().learn(domain)
        if os.environ.get("TOY_SLEEP_IN") == str(domain.index):
            Path(os.environ["TOY_MARK"]).write_text("here")
            time.sleep(60)


class Router(RouterMethod, Means):
    """Routes by brightness; predicts class 0 outside domain 0, so that the oracle matters."""

    inputs = frozenset({"features", "images"})

    def predict_domain(self, batch):
        return torch.zeros(len(batch), dtype=torch.long, device=self.context.device)

    def predict_in_domain(self, batch, domains):
        classes = (batch.features @ self.sums.T).argmax(1)
        return torch.where(domains == 0, classes, torch.zeros_like(classes))


class RaisesInBuild(Means):
    def __init__(self, context):
        raise ValueError("cannot be built, says the test")


class RaisesInLearn(Means):
    def learn(self, domain):
        raise ValueError("learn says the test")


class RaisesInPredict(Means):
    def predict(self, batch):
        raise ValueError("predict says the test")


class ReturnsLogits(Means):
    def predict(self, batch):
        return batch.features @ self.sums.T


class ReturnsTooFew(Means):
    def predict(self, batch):
        return super().predict(batch)[:-1]


class ReturnsOutOfRange(Means):
    def predict(self, batch):
        return super().predict(batch) + len(CLASSES)


class KeepsDomains(Means):
    """Reads the images of the first domain when the second is there."""

    kept = None

    def learn(self, domain):
        if domain.index:
            KeepsDomains.kept.features()
        KeepsDomains.kept = domain
        super().learn(domain)


class AsksForEarlier(Means):
    def learn(self, domain):
        if domain.index:
            domain.earlier  # noqa: B018


class SpoilsBackbone(Means):
    def learn(self, domain):
        with torch.no_grad():
            self.context.backbone.model.visual[1].weight.add_(1.0)


class UndeclaredImages(Means):
    def predict(self, batch):
        return batch.images.flatten(1).argmax(1)


class OddState(Means):
    def state_dict(self):
        return {"sums": [1, 2, 3]}


class LearnsFromTests(Means):
    """Adds what it predicts to its state, and remembers it beside the state, too."""

    secret = 0

    def predict(self, batch):
        classes = super().predict(batch)
        self.sums.index_add_(0, classes, batch.features)
        self.secret += 1
        return classes

    def learn(self, domain):
        assert not self.secret
        super().learn(domain)


class LearnsFromOracle(Router):
    """Would keep the true domains that only the oracle's pass is given."""

    told = 0

    def learn(self, domain):
        assert not self.told
        super().learn(domain)

    def predict_in_domain(self, batch, domains):
        self.told = max(self.told, int(domains.max()))
        return super().predict_in_domain(batch, domains)


class OddReports(Means):
    """Says of itself what JSON has no word for."""

    def trained_parameters(self):
        raise RuntimeError("nobody knows")

    def diagnostics(self):
        return {"loss": float("nan"), "bounds": (float("-inf"), 1), "sum": self.sums.sum()}


METHODS = [
    LearnsFromTests, LearnsFromOracle, OddReports,
    Means, Slow, Router, RaisesInBuild, RaisesInLearn, RaisesInPredict, ReturnsLogits,
    ReturnsTooFew, ReturnsOutOfRange, KeepsDomains, AsksForEarlier, SpoilsBackbone,
    UndeclaredImages, OddState,
]  # fmt: skip


@hookimpl
def fsdil_methods():
    named = [(f"toy-{m.__name__.lower()}", m) for m in METHODS]
    text = MethodInfo("toy-text", "needs text", Means, needs_text=True)
    return [MethodInfo(name, name, method) for name, method in named] + [text]


@hookimpl
def fsdil_scenarios():
    return [ScenarioInfo("toy", "coloured patches", build_stream, default_backbone="toy-clip")]


@hookimpl
def fsdil_backbones():
    return [
        BackboneInfo("toy-clip", "two linear maps", build_backbone),
        BackboneInfo("mute-clip", "no text tower", build_mute, has_text=False),
    ]
