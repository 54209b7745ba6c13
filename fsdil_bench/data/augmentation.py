"""Random views of a picture, with all random numbers from one given generator.

torchvision's random transforms draw from torch's global generator, which all threads share. Here
they only describe a step. The numbers are drawn in torchvision's order, so that a view is bit for
bit what torchvision makes when its global generator has the same seed.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

_TRIES = 10  # to find a crop that fits into the picture


def random_view(steps: list[Any], image: torch.Tensor, seed: int) -> torch.Tensor:
    """The picture (3, height, width) after all steps."""
    generator = torch.Generator().manual_seed(seed)
    for step in steps:
        image = _random_step(step, image, generator)
    return image


def _random_step(step: Any, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    view: torch.Tensor
    match step:
        case v2.RandomResizedCrop():
            height, width = image.shape[-2:]
            box = _draw_box(step, height, width, generator)
            view = F.resized_crop(
                image, *box, step.size, interpolation=step.interpolation, antialias=step.antialias
            )
        case v2.RandomHorizontalFlip():
            view = F.horizontal_flip(image) if _happens(step.p, generator) else image
        case v2.RandomGrayscale():
            view = F.rgb_to_grayscale(image, 3) if _happens(step.p, generator) else image
        case v2.ColorJitter(brightness=(low, high), contrast=None, saturation=None, hue=None):
            torch.randperm(4, generator=generator)  # the order of adjustments: here is only one
            view = F.adjust_brightness(image, _uniform(low, high, generator))
        case _:
            raise NotImplementedError(f"no random view is defined for {step}")
    return view


def _draw_box(
    step: v2.RandomResizedCrop, height: int, width: int, generator: torch.Generator
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a crop with a random area and aspect ratio."""
    smallest, largest = step.scale
    narrow, wide = step.ratio
    low, high = torch.log(torch.tensor(step.ratio)).tolist()
    for _ in range(_TRIES):
        area = height * width * _uniform(smallest, largest, generator)
        ratio = torch.exp(torch.tensor([_uniform(low, high, generator)])).item()
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            top = _integer(height - h + 1, generator)
            return top, _integer(width - w + 1, generator), h, w
    w = min(width, round(height * wide))
    h = min(height, round(width / narrow))
    return (height - h) // 2, (width - w) // 2, h, w


def _happens(probability: float, generator: torch.Generator) -> bool:
    return bool(torch.rand(1, generator=generator) < probability)


def _uniform(low: float, high: float, generator: torch.Generator) -> float:
    return torch.empty(1).uniform_(low, high, generator=generator).item()


def _integer(limit: int, generator: torch.Generator) -> int:
    return int(torch.randint(0, limit, (1,), generator=generator))
