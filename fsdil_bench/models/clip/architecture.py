"""Which model weights are for: its config, and the statistics of the images it takes.

A model is one of open_clip's, or one of your own, whose config is next to its weights as open_clip
saves it. Torch is not needed here.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench.errors import DataError, RequestError

from .catalogue import catalogue, model_config

CONFIG_FILE = "open_clip_config.json"

Colour = tuple[float, float, float]
_OPENAI: tuple[Colour, Colour] = (
    (0.48145466, 0.4578275, 0.40821073),
    (0.26862954, 0.26130258, 0.27577711),
)


@dataclass(frozen=True)
class Architecture:
    """A model without weights.

    `config` is what open_clip builds it from. `folder` has the config of a model of one's own.
    """

    model: str
    config: dict[str, Any]
    mean: Colour
    std: Colour
    folder: Path | None = None

    @property
    def embed_dim(self) -> int:
        """The width of the joint space."""
        return int(self.config["embed_dim"])

    @property
    def quick_gelu(self) -> bool:
        """Whether the activation function is OpenAI's approximation of GELU."""
        return bool(self.config.get("quick_gelu", False))

    @property
    def image_size(self) -> int:
        """Width and height of the images it takes."""
        size = self.config["vision_cfg"].get("image_size", 224)
        sides = {size} if isinstance(size, int) else set(size)
        if len(sides) != 1:
            raise RequestError(f"{self.model} takes images that are not square: {size}")
        return int(sides.pop())

    @property
    def particulars(self) -> dict[str, Any]:
        """What the model's name does not say, and so has to be part of a hash."""
        own = {"config": self.config} if self.folder else {}
        usual = (self.mean, self.std) == _statistics(self.model)
        return own if usual else own | {"mean": self.mean, "std": self.std}

    def check_activation(self, quick_gelu: bool, whose: str) -> None:
        """Weights under the wrong activation function cause no error, only wrong embeddings."""
        if quick_gelu == self.quick_gelu:
            return
        plain = self.model.removesuffix("-quickgelu")
        right = f"{plain}-quickgelu" if quick_gelu else plain
        names = ("QuickGELU", "GELU") if quick_gelu else ("GELU", "QuickGELU")
        raise RequestError(
            f"{whose} need {names[0]}, but the model {self.model} has {names[1]}",
            f"Use the model {right}." if model_config(right) else "Use a model that has it.",
        )


def architecture(model: str, weights: Path | None = None) -> Architecture:
    """The architecture called `model`, as the config beside the file `weights` has it, if any."""
    beside = _config_beside(weights) if weights else {}
    config = model_config(model)
    mean, std = _statistics(model)
    processing = beside.get("preprocess_cfg", {})
    mean, std = processing.get("mean", mean), processing.get("std", std)
    if config is not None:
        found = Architecture(model, config, tuple(mean), tuple(std))
        if "model_cfg" in beside:
            quick_gelu = bool(beside["model_cfg"].get("quick_gelu", False))
            found.check_activation(quick_gelu, f"by the {CONFIG_FILE} beside it, the weights")
        return found
    if weights is None or "model_cfg" not in beside:
        raise _unknown_model(model)
    own = beside["model_cfg"]
    if missing := {"embed_dim", "vision_cfg", "text_cfg"} - set(own):
        raise DataError(
            f"{weights.parent / CONFIG_FILE} describes no model: {', '.join(sorted(missing))} "
            "missing in model_cfg",
            "Write it as open_clip does when it saves a model.",
        )
    return Architecture(model, own, tuple(mean), tuple(std), weights.parent)


def published_architecture(model: str, tag: str) -> Architecture:
    """The architecture that the published weights `tag` of `model` are for."""
    found = architecture(model)
    tags = catalogue().tags.get(model, {})
    if tag not in tags:
        offered = f"It has: {', '.join(tags)}." if tags else "open_clip publishes none for it."
        raise RequestError(
            f"{model} has no weights '{tag}'", f"{offered} Or name a file: {model}:path/to/file"
        )
    # Only in this direction: one model of open_clip has QuickGELU, but its tag forgets to say so.
    if tags[tag].get("quick_gelu", False):
        found.check_activation(True, f"the weights '{tag}'")
    mean, std = tags[tag]["mean"], tags[tag]["std"]
    return Architecture(model, found.config, tuple(mean), tuple(std))


def _config_beside(weights: Path) -> dict[str, Any]:
    path = weights.parent / CONFIG_FILE
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{path} is not a config of open_clip: {error}", "Fix it, or move the weights away."
        ) from error


def _statistics(model: str) -> tuple[Colour, Colour]:
    """Mean and deviation that all published weights of a model agree on, else OpenAI's."""
    cards = catalogue().tags.get(model, {}).values()
    agreed: set[Any] = {(tuple(card["mean"]), tuple(card["std"])) for card in cards}
    return agreed.pop() if len(agreed) == 1 else _OPENAI


def _unknown_model(model: str) -> RequestError:
    folded = {name.lower(): name for name in catalogue().models}
    near = difflib.get_close_matches(model.lower(), folded, n=5, cutoff=0.5)
    similar = ", ".join(folded[name] for name in near)
    return RequestError(
        f"open_clip has no model '{model}'",
        (f"Similar ones: {similar}. " if near else f"It has {len(folded)} models. ")
        + f"A model of your own needs its {CONFIG_FILE} next to the file of weights.",
    )
