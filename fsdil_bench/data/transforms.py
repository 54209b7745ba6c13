"""From pictures to what the image tower takes: a plain view for testing and statistics, an
augmented view for training.

A plain view is made of the whole picture. Augmented views are made of the picture shrunk to about
what the tower can see, so that the pictures of a few-shot domain fit into memory. Pictures are
always shrunk, whether they would fit or not, so that results do not depend on the memory. Small
pictures stay as they are.

Both views are uint8 tensors of the tower's size, so that a cached view is small; `normalise` turns
a batch of them into floats on the device. Random choices follow from a seed per picture, never from
torch's global generator, so views can be made in any number of threads (`augmentation`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torchvision.transforms import InterpolationMode, v2

from .augmentation import random_view
from .scenario import check_transform

Triple = tuple[float, float, float]
Steps = tuple[list[Any], list[Any]]


@dataclass(frozen=True)
class ImageSpec:
    """What an image tower was trained on: square size and channel statistics."""

    size: int
    mean: Triple = (0.48145466, 0.4578275, 0.40821073)
    std: Triple = (0.26862954, 0.26130258, 0.27577711)


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
        """The random view number `seed` of the picture, which is shrunk first if it is large."""
        small = _channels_first(self.shrunk(image))
        return random_view(self.train_steps.transforms, small, seed)

    @cached_property
    def short_side(self) -> int:
        """The short side of a picture from which even the smallest crop need not be enlarged.

        Presets with tiny crops would need very large pictures for that, so there is a bound.
        """
        crops = [s for s in self.train_steps.transforms if isinstance(s, v2.RandomResizedCrop)]
        least = min(crop.scale[0] * crop.ratio[0] for crop in crops)
        size = self.spec.size
        return max(_LEAST_SIDE, min(math.ceil(size / math.sqrt(least)), _MOST_SIZES * size))

    def is_small(self, image: np.ndarray) -> bool:
        """Whether augmented views are made of the picture as it is."""
        return min(image.shape[:2]) <= self.short_side

    def shrunk(self, image: np.ndarray) -> np.ndarray:
        """The picture with a short side of `short_side`, or itself if it is small."""
        if self.is_small(image):
            return image
        import PIL.Image

        height, width = image.shape[:2]
        scale = self.short_side / min(height, width)
        size = (round(width * scale), round(height * scale))
        return np.asarray(PIL.Image.fromarray(image).resize(size, PIL.Image.Resampling.BICUBIC))

    def normalise(self, views: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A batch of uint8 views as the floats the tower expects; on a GPU with the channels
        last, as its convolutions want them."""
        mean, std = (
            _per_channel(each).to(device, non_blocking=True)
            for each in (self.spec.mean, self.spec.std)
        )
        there = views.to(device, non_blocking=True)
        if device.type == "cuda":
            there = there.contiguous(memory_format=torch.channels_last)  # while they are bytes
        return (there.float() / 255.0 - mean) / std

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


@dataclass(frozen=True)
class Preset:
    """The steps of the plain and the augmented view for a size of image, and channel statistics
    where they are not the tower's own."""

    steps: Callable[[int], Steps]
    mean: Triple | None = None
    std: Triple | None = None


_CUBIC = {"interpolation": InterpolationMode.BICUBIC, "antialias": True}
_LINEAR = {"interpolation": InterpolationMode.BILINEAR, "antialias": True}
_LEAST_SIDE = 128  # pixels: shrinking smaller pictures would save next to nothing
_MOST_SIZES = 3  # times the tower's size is the largest short side that pictures are shrunk to
_MOST = (0.7, 1.0)  # of the picture's area; torchvision's own range starts at 0.08
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def _clip(size: int) -> Steps:
    plain = [v2.Resize(size, **_CUBIC), v2.CenterCrop(size)]
    train = [v2.RandomResizedCrop(size, scale=_MOST, **_CUBIC), v2.RandomHorizontalFlip()]
    return plain, train


def _core50(size: int) -> Steps:
    plain = [v2.Resize(_with_margin(size), **_LINEAR), v2.CenterCrop(size)]
    train = [v2.RandomResizedCrop(size, **_LINEAR), v2.RandomHorizontalFlip()]
    return plain, train


def _cddb(size: int) -> Steps:
    plain = [v2.Resize(_with_margin(size), **_CUBIC), v2.CenterCrop(size)]
    train = [
        v2.RandomResizedCrop(size, **_CUBIC),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(brightness=63 / 255),
    ]
    return plain, train


def _domainnet(size: int) -> Steps:
    plain = [v2.Resize((size, size), **_CUBIC)]  # the whole picture, its proportions changed
    train = [
        v2.RandomResizedCrop(size, scale=_MOST, **_CUBIC),
        v2.RandomHorizontalFlip(),
        v2.RandomGrayscale(0.1),
    ]
    return plain, train


def _with_margin(size: int) -> int:
    """The length of the short side before the middle is cut out: 256 for 224."""
    return round(size * 256 / 224)


#: Presets by name: CLIP's own, and those of the CVLC paper for its three data sets.
PRESETS: dict[str, Preset] = {
    "cddb": Preset(_cddb, **_IMAGENET),
    "clip": Preset(_clip),
    "core50": Preset(_core50, **_IMAGENET),
    "domainnet": Preset(_domainnet, **_IMAGENET),
}


def build_transform(preset: str, spec: ImageSpec) -> Transform:
    """The preset's two views for a tower that takes images of `spec`."""
    check_transform(preset)
    chosen = PRESETS[preset]
    plain, train = chosen.steps(spec.size)
    spec = replace(spec, mean=chosen.mean or spec.mean, std=chosen.std or spec.std)
    return Transform(preset, spec, v2.Compose(plain), v2.Compose(train))


@cache
@torch.inference_mode(False)  # made in inference mode, it could not be used in training later
def _per_channel(values: Triple) -> torch.Tensor:
    return torch.tensor(values).view(1, 3, 1, 1)


def _channels_first(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(image, copy=True)).permute(2, 0, 1)


def _one_line(steps: Any) -> str:
    return " > ".join(" ".join(repr(step).split()) for step in steps.transforms)
