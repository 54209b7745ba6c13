"""The images of Avalanche data sets as the harness takes them: RGB, uint8, (height, width, 3).

What a data set gives is a matter of its makers: pictures, arrays or tensors, bytes or fractions.
Each form that can only mean one thing is taken, and everything else is refused with its name.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from fsdil_bench.errors import DataError, RequestError

#: Mean and standard deviation per channel, as `torchvision.transforms.Normalize` takes them.
Normalised = tuple[Sequence[float], Sequence[float]]

_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"}
_ROUNDING = 1e-3  # beyond 0 and 1, as interpolation leaves it
_TAKEN = (
    "Give pictures of PIL, arrays (height, width) or (height, width, 1 or 3), or tensors "
    "(height, width) or (1 or 3, height, width), of uint8 or of floats from 0 to 1."
)


class IncomingImages:
    """Loads an image by its id `<domain>/<train or test>/<number>`, when it is needed.

    Data sets are made for one thread at a time, and the harness has several: they take turns.
    Some transforms draw from the generators of the process although nothing depends on it, for
    instance a `RandomRotation` by one angle. Images are read while a method is at work, which may
    draw from them, too. So the images of such data sets are `kept` as soon as they are read, which
    is before a run, for their keys.
    """

    def __init__(self, datasets: Mapping[str, Any], normalised: Normalised | None = None) -> None:
        self._datasets = datasets
        self._normalised = None if normalised is None else _channels(normalised)
        self._turn = threading.Lock()
        self.kept: dict[str, np.ndarray] | None = None

    def __call__(self, sample_id: str) -> np.ndarray:
        """The picture of an id."""
        if self.kept is not None and sample_id in self.kept:
            return self.kept[sample_id]
        picture = as_picture(self.item(sample_id)[0], sample_id, self._normalised)
        if self.kept is not None:
            self.kept[sample_id] = picture
        return picture

    def look_at(self, sample_id: str) -> bool:
        """Whether an image is the same when it is read twice; notes whether reading it draws."""
        before = _generators()
        same = np.array_equal(self(sample_id), self(sample_id))
        if _generators() != before and self.kept is None:
            self.kept = {}
        return same

    def item(self, sample_id: str) -> Sequence[Any]:
        """What the data set holds: image, label and perhaps more."""
        place, _, number = sample_id.rpartition("/")
        with self._turn:
            found = self._datasets[place][int(number)]
        if not isinstance(found, tuple | list) or len(found) < 2:
            raise DataError(
                f"'{sample_id}' is a {type(found).__name__}, not a pair of image and label",
                "The items of a data set must begin with the image and its label.",
            )
        return found


def as_picture(
    image: Any, name: str, normalised: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """An image of any form that is taken as RGB, uint8, (height, width, 3)."""
    if isinstance(image, Image.Image):
        if image.mode not in _MODES:
            raise DataError(f"image '{name}' has the mode {image.mode} of PIL", _TAKEN)
        return np.asarray(image.convert("RGB"))
    if torch.is_tensor(image):
        pixels = image.detach().cpu().float().numpy() if image.is_floating_point() else (
            image.detach().cpu().numpy()
        )  # fmt: skip
        pixels = np.moveaxis(pixels, 0, -1) if pixels.ndim == 3 else pixels
    elif isinstance(image, np.ndarray):
        pixels = image
    else:
        raise DataError(f"image '{name}' is a {type(image).__name__}", _TAKEN)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    is_float = np.issubdtype(pixels.dtype, np.floating)
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise DataError(f"image '{name}' is a {_form(image)}", _TAKEN)
    if not is_float and pixels.dtype != np.uint8:
        raise DataError(f"image '{name}' is a {_form(image)}", _TAKEN)
    if is_float:
        pixels = _bytes(pixels, name, normalised)
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _bytes(
    pixels: np.ndarray, name: str, normalised: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray:
    """Fractions as bytes, after the normalisation is undone."""
    if normalised is not None:
        mean, std = normalised
        pixels = pixels * std + mean
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= -_ROUNDING and high <= 1 + _ROUNDING):  # also where one is not a number
        undone = "" if normalised is None else ", after the normalisation was undone"
        raise DataError(
            f"image '{name}' has floats from {low:.3g} to {high:.3g}, not from 0 to 1{undone}",
            "Leave Normalize out of eval_transform, or say what it did: "
            "normalised=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)).",
        )
    return np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)


def _generators() -> tuple[bytes, ...]:
    """The states of the generators that all code of this process shares."""
    states = torch.get_rng_state().numpy().tobytes(), random.getstate(), np.random.get_state()  # noqa: NPY002
    return tuple(hashlib.sha256(repr(each).encode()).digest() for each in states)


def _form(image: Any) -> str:
    kind = "tensor" if torch.is_tensor(image) else "array"
    return f"{str(image.dtype).removeprefix('torch.')} {kind} {tuple(image.shape)}"


def _channels(normalised: Normalised) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation as arrays that fit the last axis of an image."""
    try:
        mean, std = (np.asarray(each, dtype=np.float32) for each in normalised)
        if all(each.shape in {(1,), (3,)} for each in (mean, std)) and (std > 0).all():
            return mean, std
    except (TypeError, ValueError):
        pass
    raise RequestError(
        f"normalised = {normalised!r} does not fit",
        "Give means and standard deviations of 1 or 3 channels: ((0.1307,), (0.3081,)).",
    )
