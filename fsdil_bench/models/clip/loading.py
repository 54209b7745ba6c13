"""Tensors into a model: all of them, each in its place, or an error that says what is wrong."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from fsdil_bench.errors import DataError, RequestError

from .architecture import Architecture
from .checkpoint import Tensors
from .fitting import advice

#: What OpenAI's archives hold besides weights.
_OPENAI_SIZES = ("input_resolution", "context_length", "vocab_size")
_SHOWN = 3


def build_model(architecture: Architecture, state: Tensors, name: str) -> torch.nn.Module:
    """The model with all its weights from `state`; `name` is for errors."""
    built = _untrained(architecture)
    _fill(built, _in_its_layout(built, architecture, state), architecture.model, name)
    return built


def build_image_side(
    architecture: Architecture, state: Tensors, name: str, log_scale: float | None
) -> ImageSide:
    """The image tower alone; `log_scale` counts where the weights have none."""
    built = _untrained(architecture)
    state = _in_its_layout(built, architecture, state)
    tower = {name: value for name, value in state.items() if name.startswith("visual.")}
    _fill(torch.nn.ModuleDict({"visual": built.visual}), tower, architecture.model, name)
    own = state.get("logit_scale")
    return ImageSide(built.visual, log_scale if own is None else float(own), architecture.model)


class ImageSide(torch.nn.Module):
    """A CLIP without text tower; asking for it says so."""

    def __init__(self, visual: Any, log_scale: float | None, model: str) -> None:
        super().__init__()
        self.visual = visual
        self.model = model
        # In training CLIP's factor may not exceed 100, and OpenAI's models all end there.
        self.logit_scale = torch.nn.Parameter(
            torch.tensor(math.log(100) if log_scale is None else log_scale)
        )

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embeddings of normalised images."""
        output = self.visual(pixels)
        embeddings: torch.Tensor = output[0] if isinstance(output, tuple) else output
        return embeddings

    @property
    def text(self) -> torch.nn.Module:
        """What a method that adapts or trains the text tower asks for."""
        raise RequestError(
            f"the method needs the text tower of {self.model}, and this backbone has none",
            "Embeddings of texts are not enough: name weights of both towers in --backbone.",
        )


def merge(image: Tensors, text: Tensors) -> Tensors:
    """The image tower of one checkpoint with all else of another."""
    merged = {name: value for name, value in text.items() if not name.startswith("visual.")}
    for name, value in image.items():
        if name.startswith("visual."):
            merged[name] = value
        elif name in ("logit_scale", "logit_bias", *_OPENAI_SIZES):  # of neither tower
            merged.setdefault(name, value)
    return merged


def _untrained(architecture: Architecture) -> Any:
    """The model with random weights, none of which may stay."""
    import open_clip

    config = copy.deepcopy(architecture.config)
    own_text = config.pop("custom_text", False)
    if "hf_model_name" in config["text_cfg"]:
        own_text = True
        config["text_cfg"]["hf_model_pretrained"] = False
    kind = open_clip.CLIP
    if own_text:
        kind = open_clip.CoCa if "multimodal_cfg" in config else open_clip.CustomTextCLIP
    try:
        # What a method draws next must not depend on whether the model had to be built.
        with torch.random.fork_rng(devices=[]):
            return kind(**config)
    except Exception as error:
        raise RequestError(
            f"open_clip cannot build {architecture.model}: {type(error).__name__}: {error}",
            "Check its config; some models need further packages, such as transformers.",
        ) from error


def _in_its_layout(built: Any, architecture: Architecture, state: Tensors) -> Tensors:
    """The weights under the names of `built`: open_clip can read older and some foreign ones."""
    from open_clip.convert import convert_state_dict
    from open_clip.model import convert_to_custom_text_state_dict

    if _OPENAI_SIZES[0] in state:
        architecture.check_activation(True, "OpenAI's weights")
    state = {name: value for name, value in state.items() if name not in _OPENAI_SIZES}
    state = convert_state_dict(built, state)
    if "positional_embedding" in state and not hasattr(built, "positional_embedding"):
        state = convert_to_custom_text_state_dict(state)
    return state


def _fill(built: torch.nn.Module, state: Tensors, model: str, name: str) -> None:
    wanted = built.state_dict()
    computed = {name for name, _ in built.named_buffers()} - wanted.keys()
    computed.add("text.transformer.embeddings.position_ids")  # of older transformers
    given = {name: value for name, value in state.items() if name not in computed}
    for key in given.keys() & wanted.keys():
        if given[key].numel() == wanted[key].numel() == 1:
            given[key] = given[key].reshape(wanted[key].shape)
    # A counter of batch norm that older checkpoints lack; only training looks at it.
    needed = [key for key in wanted if not key.endswith(".num_batches_tracked")]
    problems = {
        "missing": [key for key in needed if key not in given],
        "not in the model": [key for key in given if key not in wanted],
        "of another shape": [
            f"{key} {tuple(value.shape)} instead of {tuple(wanted[key].shape)}"
            for key, value in given.items()
            if key in wanted and value.shape != wanted[key].shape
        ],
    }
    if any(problems.values()):
        said = [_enumerate(keys, what) for what, keys in problems.items() if keys]
        raise DataError(
            f"the weights of {name} do not fit the model {model}; {'; '.join(said)}",
            advice(given, model, text_tower="logit_scale" in wanted),
        )
    built.load_state_dict(given, strict=False)


def _enumerate(names: list[str], what: str) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}: {', '.join(names[:_SHOWN])}{more}"
