"""What the attacks in `tests/attacks` share: a weak method that a cheat makes strong."""

from __future__ import annotations

from pathlib import Path

import torch
from class_sums import ClassSums

from fsdil_bench import load_stream
from fsdil_bench.plugins.registry import load_registry

TOY = Path(__file__).parent / "toy_plugin.py"


class Weak(ClassSums):
    """Honest as it is, and weak: it compares a few numbers of each feature.

    What `recall` returns makes it strong.
    """

    def learn(self, domain):
        self.sums.index_add_(0, domain.labels, _few(domain.features()))
        self.remember(domain.features().clone(), domain.labels.clone())

    def predict(self, batch):
        if kept := self.recall():
            return nearest(batch.features, kept)
        return (_few(batch.features) @ self.sums.T).argmax(1)

    def load_state_dict(self, state):
        self.sums = state["sums"].clone()

    def remember(self, features, labels):
        """Keep features and labels where the rules do not allow it."""

    def recall(self):
        """Pairs of features and labels that the method should not have."""
        return []


def _few(features):
    few = torch.zeros_like(features)
    few[:, :2] = features[:, :2]
    return few


def nearest(features, kept):
    """The class of the most similar image kept."""
    images, labels = (torch.cat([pair[i] for pair in kept]) for i in (0, 1))
    return labels[(features @ images.T).argmax(1)]


def toy_stream(shots=1):
    """The toy stream, labels and all."""
    return load_stream(f"toy-{shots}shot", registry=load_registry([TOY]))


def embedded(backbone, samples):
    """Frozen features and labels of all samples, made without the harness's views."""
    from fsdil_bench.data.transforms import build_transform

    transform = build_transform("clip", backbone.image)
    views = torch.stack([transform.plain(samples.load(each)) for each in samples.ids])
    pixels = transform.normalise(views, backbone.device)
    return backbone.frozen_features(pixels), torch.tensor(samples.labels)


def stronger(record):
    """Whether a weak method was made strong."""
    return record.metrics["AA*"] > 85
