"""How well forgeries can be told, maker by maker, and how far what is learned carries over.

    python -m fsdil_scenarios.forged.profile

Two linear probes see validation pictures at the backbone's size: one their hand-made statistics,
one the embeddings of tiny-clip. Each learns on a maker (rows) and is asked about every maker
(columns). The makers were adjusted by this table; the test split stays untouched.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from ..tiny_clip.model import IMAGE_SIZE, embed_pictures, load_model
from .statistics import statistics
from .world import ALL_MAKERS, CLASSES, draw


def pictures_of(maker: str, first: int, number: int) -> tuple[np.ndarray, torch.Tensor]:
    """`number` validation pictures of either class at the backbone's size, and their labels."""
    labels = [label for label in range(len(CLASSES)) for _ in range(number)]
    pictures = [
        draw(CLASSES[label], maker, first + k % number, split="validation")
        for k, label in enumerate(labels)
    ]
    size = (IMAGE_SIZE, IMAGE_SIZE)
    seen = [Image.fromarray(p).resize(size, Image.Resampling.BICUBIC) for p in pictures]
    return np.stack([np.asarray(each) for each in seen]), torch.tensor(labels)


def linear_probe(features: torch.Tensor, labels: torch.Tensor, penalty: float) -> torch.Tensor:
    """Logistic regression with a constant feature added; weights (features + 1, classes)."""
    weights = torch.zeros(features.shape[1] + 1, len(CLASSES), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(_logits(features, weights), labels)
        value = value + penalty * weights.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return weights.detach()


def _logits(features: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return features @ weights[:-1] + weights[-1]


def transfer(
    train: list[torch.Tensor], test: list[torch.Tensor], labels: list[torch.Tensor], penalty: float
) -> np.ndarray:
    """Accuracy (%) of a probe that learned on one maker (row), asked about another (column)."""
    table = []
    for features in train:
        mean, std = features.mean(0), features.std(0) + 1e-6
        weights = linear_probe((features - mean) / std, labels[0], penalty)
        right = [_logits((each - mean) / std, weights).argmax(1) == labels[1] for each in test]
        table.append([100 * float(each.float().mean()) for each in right])
    return np.array(table)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print how well forgeries can be told.")
    parser.add_argument("--number", type=int, default=300, help="pictures of either class to learn")
    parser.add_argument("--asked", type=int, default=150, help="pictures of either class to ask")
    options = parser.parse_args()
    model = load_model()
    pictures = [
        [pictures_of(m, 0, options.number), pictures_of(m, options.number, options.asked)]
        for m in ALL_MAKERS
    ]
    labels = [part[1] for part in pictures[0]]

    def numbers(batch: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.stack([statistics(each) for each in batch])).float()

    probes = {
        "statistics": (numbers, 1e-3),
        "tiny-clip": (lambda batch: embed_pictures(model, batch).clone(), 1e-3),
    }
    for name, (features, penalty) in probes.items():
        train, test = ([features(each[part][0]) for each in pictures] for part in range(2))
        table = transfer(train, test, labels, penalty)
        print(f"{name:<12}" + "".join(f"{maker:>11}" for maker in ALL_MAKERS))
        for maker, row in zip(ALL_MAKERS, table, strict=True):
            print(f"{maker:<12}" + "".join(f"{value:>11.1f}" for value in row))


if __name__ == "__main__":
    main()
