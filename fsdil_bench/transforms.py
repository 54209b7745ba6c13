"""From pictures to what the image tower takes: a plain view for testing and statistics, an
augmented view for training.

Both give uint8 tensors of the tower's size, so that a cached view is small; `normalise` turns a
batch of them into floats on the device. Random choices come from a seed given per picture, never
from the global generator's history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torchvision.transforms import InterpolationMode, v2

from .errors import unknown


@dataclass(frozen=True)
class ImageSpec:
    """What an image tower was trained on: square size and channel statistics."""

    size: int
    mean: tuple[float, float, float] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, float, float] = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class Transform:
    """The two views of a picture under a named preset."""

    preset: str
    spec: ImageSpec
    plain_steps: Any
    train_steps: Any

    def plain(self, image: np.ndarray) -> torch.Tensor:
        """The view without randomness."""
        view: torch.Tensor = self.plain_steps(_channels_first(image))
        return view

    def augmented(self, image: np.ndarray, seed: int) -> torch.Tensor:
        """The random view number `seed` of the picture."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            view: torch.Tensor = self.train_steps(_channels_first(image))
        return view

    def normalise(self, views: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A batch of uint8 views as the floats the tower expects."""
        mean = torch.tensor(self.spec.mean, device=device).view(1, 3, 1, 1)
        std = torch.tensor(self.spec.std, device=device).view(1, 3, 1, 1)
        return (views.to(device, non_blocking=True).float() / 255.0 - mean) / std

    def describe(self) -> dict[str, Any]:
        """What was done to the pictures, for the record."""
        return {
            "preset": self.preset,
            "plain": _one_line(self.plain_steps),
            "augmented": _one_line(self.train_steps),
            "size": self.spec.size,
            "mean": list(self.spec.mean),
            "std": list(self.spec.std),
        }

    def digest(self) -> str:
        """A hash of all that decides a plain view as the tower sees it: a cache key."""
        known = self.describe()
        parts = [known[name] for name in ("plain", "size", "mean", "std")]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def _clip(size: int) -> tuple[list[Any], list[Any]]:
    cubic = {"interpolation": InterpolationMode.BICUBIC, "antialias": True}
    plain = [v2.Resize(size, **cubic), v2.CenterCrop(size)]
    train = [v2.RandomResizedCrop(size, scale=(0.7, 1.0), **cubic), v2.RandomHorizontalFlip()]
    return plain, train


#: Presets by name: a function of the image size giving the steps of the two views.
PRESETS: dict[str, Callable[[int], tuple[list[Any], list[Any]]]] = {"clip": _clip}


def build_transform(preset: str, spec: ImageSpec) -> Transform:
    """The preset's two views for a tower that takes images of `spec`."""
    if preset not in PRESETS:
        raise unknown("transform preset", preset, PRESETS, "fsdil-bench run --help")
    plain, train = PRESETS[preset](spec.size)
    return Transform(preset, spec, v2.Compose(plain), v2.Compose(train))


def _channels_first(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(image, copy=True)).permute(2, 0, 1)


def _one_line(steps: Any) -> str:
    return " > ".join(" ".join(repr(step).split()) for step in steps.transforms)
