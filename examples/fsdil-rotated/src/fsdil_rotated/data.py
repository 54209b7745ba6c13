"""An Avalanche benchmark of rotated shapes, and the stream that is made of it."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image, ImageDraw

from fsdil_bench import ScenarioRequest, Stream, numpy_generator, stream_from_avalanche

CLASSES = ("a triangle", "a square", "a bar", "a ring")
ANGLES = {"upright": 0, "30 degrees": 30, "60 degrees": 60}
TRAIN, TEST = 40, 10  # pictures per class and angle
SIZE = 64


class Shapes(torch.utils.data.Dataset):
    """Pictures of shapes, drawn when they are asked for. Avalanche reads `targets`."""

    def __init__(self, part: str, per_class: int) -> None:
        self.part = part
        self.targets = [label for label in range(len(CLASSES)) for _ in range(per_class)]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        label = self.targets[index]
        return draw(label, self.part, index), label


def draw(label: int, part: str, index: int) -> Image.Image:
    """A shape of a colour, size and place of its own, on grey."""
    chance = numpy_generator(0, "rotated", part, index)
    x, y = chance.uniform(0.4, 0.6, 2) * SIZE
    r = chance.uniform(0.15, 0.25) * SIZE
    colour = tuple(int(value) for value in chance.integers(120, 256, 3))
    image = Image.new("RGB", (SIZE, SIZE), (60, 60, 60))
    pen = ImageDraw.Draw(image)
    if CLASSES[label] == "a triangle":
        pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=colour)
    elif CLASSES[label] == "a ring":
        pen.ellipse([x - r, y - r, x + r, y + r], outline=colour, width=4)
    else:
        height = r if CLASSES[label] == "a square" else r / 4
        pen.rectangle([x - r, y - height, x + r, y + height], fill=colour)
    return image


def benchmark() -> Any:
    """The benchmark: an experience for every angle. Rotating is what its data sets do, so it is in
    both groups of transforms; what a method needs besides, the harness does."""
    from avalanche.benchmarks import benchmark_from_datasets
    from avalanche.benchmarks.utils import as_classification_dataset
    from torchvision.transforms import RandomRotation

    train, test = [], []
    for angle in ANGLES.values():
        turn = RandomRotation(degrees=(angle, angle), fill=60), None
        groups = {"train": turn, "eval": turn}
        train.append(as_classification_dataset(Shapes("train", TRAIN), transform_groups=groups))
        test.append(as_classification_dataset(Shapes("test", TEST), transform_groups=groups))
    return benchmark_from_datasets(train=train, test=test)


def build(request: ScenarioRequest) -> Stream:
    """Every experience with all of its pictures: the harness draws the few shots."""
    return stream_from_avalanche(benchmark(), CLASSES, domains=tuple(ANGLES))
