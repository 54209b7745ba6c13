"""What to do about weights that do not fit a model: which model they look like."""

from __future__ import annotations

from typing import Any

from .catalogue import catalogue
from .checkpoint import Tensors


def advice(state: Tensors, model: str, *, text_tower: bool) -> str:
    """A remedy, from what tensors there are and how big they are."""
    if not any(name.startswith("visual.") for name in state):
        return "There is no image tower; tensors need open_clip's names, such as visual.proj."
    if text_tower and not any(_is_text(name) for name in state):
        return "There is no text tower; name a second file for it: MODEL:IMAGE+TEXT."
    alike = [name for name in _models_like(state) if name != model]
    if alike:
        return f"By its sizes this is {' or '.join(alike)}."
    return "Name the model that the weights were made for."


def _is_text(name: str) -> bool:
    return name.startswith(("text.", "token_embedding", "text_projection"))


def _models_like(state: Tensors) -> list[str]:
    """Models whose vision transformer, and text tower if there is one, have these sizes."""
    if "visual.conv1.weight" not in state or "visual.positional_embedding" not in state:
        return []
    kernel = state["visual.conv1.weight"].shape
    sizes: dict[str, Any] = {
        "width": kernel[0],
        "patch": kernel[-1],
        "blocks": _blocks(state, "visual.transformer.resblocks."),
        "tokens": len(state["visual.positional_embedding"]),
    }
    if "token_embedding.weight" in state:
        words, width = state["token_embedding.weight"].shape
        blocks = _blocks(state, "transformer.resblocks.")
        sizes |= {"words": words, "text width": width, "text blocks": blocks}
    models = catalogue().models.items()
    return [name for name, config in models if sizes.items() <= _sizes(config).items()]


def _blocks(state: Tensors, prefix: str) -> int:
    return len({name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)})


def _sizes(config: dict[str, Any]) -> dict[str, Any]:
    vision, text = config["vision_cfg"], config["text_cfg"]
    patch, image = vision.get("patch_size"), vision.get("image_size", 224)
    if not patch or not isinstance(vision.get("layers"), int):
        return {}
    return {
        "width": vision.get("width"),
        "patch": patch,
        "blocks": vision["layers"],
        "tokens": (image // patch) ** 2 + 1,
        "words": text.get("vocab_size"),
        "text width": text.get("width"),
        "text blocks": text.get("layers"),
    }
