"""The configuration of a model in a file that `--backbone` names, checked without torch.

Two forms are open_clip's: the config of a model alone (`embed_dim`, `vision_cfg`, `text_cfg`), and
`open_clip_config.json`, which has it as `model_cfg` with the statistics of the pixels beside it.
Everything that would be fetched from elsewhere, or read from files that no hash knows, is refused.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fsdil_bench.errors import DataError, RequestError

from .architecture import _OPENAI, Architecture, Colour

#: How many tokens open_clip's own tokenizer knows.
TOKENS = 49408
#: What describes the text side; all else may change what the image tower computes.
_TEXT_SIDE = ("text_cfg", "custom_text", "multimodal_cfg")
_NEEDED = ("embed_dim", "vision_cfg", "text_cfg")
_KINDS = {
    "embed_dim": (int, "a whole number"),
    "vision_cfg": (dict, "an object"),
    "text_cfg": (dict, "an object"),
    "quick_gelu": (bool, "true or false"),
}
_FORMS = (
    "It should be a config as open_clip writes it: embed_dim, vision_cfg and text_cfg, or these as "
    "model_cfg. docs/backbones.md shows one."
)


def read_config(path: Path, *, text_tower: bool) -> Architecture:
    """The model that a file describes; without `text_tower` its image side counts alone."""
    content = _json(path)
    config = content.get("model_cfg", content)
    config = config if isinstance(config, dict) else {}
    if not text_tower:  # open_clip builds one in any case: its usual one, which is not used
        config = image_config(config) | {"text_cfg": {}}
    if absent := [name for name in _NEEDED if name not in config]:
        raise DataError(f"{path} describes no model: {', '.join(absent)} missing", _FORMS)
    for name, (kind, what) in _KINDS.items():
        if name in config and type(config[name]) is not kind:
            raise DataError(f"{path}: {name} is {config[name]!r:.60}, not {what}", _FORMS)
    _check_text(config["text_cfg"], path)
    config = config | {"vision_cfg": _vision(config["vision_cfg"], path)}
    mean, std = _statistics(content.get("preprocess_cfg", {}), path)
    return Architecture(path.name, config, mean, std)


def image_config(config: dict[str, Any]) -> dict[str, Any]:
    """What a config says of the image side."""
    return {name: value for name, value in config.items() if name not in _TEXT_SIDE}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(
            f"the config {path} cannot be read: {error.strerror or error}",
            "Check the path before the colon of --backbone.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}", _FORMS) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a JSON object", _FORMS)
    return content


def _vision(vision: dict[str, Any], path: Path) -> dict[str, Any]:
    size = vision.get("image_size", 224)
    sides = size if isinstance(size, list) else [size]
    if len(set(map(repr, sides))) != 1 or type(sides[0]) is not int or sides[0] < 1:
        raise DataError(f"{path}: image_size is {size!r:.60}, not the side of a square", _FORMS)
    timm = vision.get("timm_model_name") or ""
    if ":" in str(timm):
        raise RequestError(
            f"{path}: timm would have to load the description of '{timm}' from elsewhere",
            "Name a model that timm itself knows.",
        )
    # The weights come from the files alone, and then it makes no difference to the model.
    return {name: value for name, value in vision.items() if name != "timm_model_pretrained"}


def _check_text(text: dict[str, Any], path: Path) -> None:
    for key, what in (("hf_model_name", "text tower"), ("hf_tokenizer_name", "tokenizer")):
        if text.get(key):
            raise RequestError(
                f"{path}: the {what} '{text[key]}' ({key}) would have to be downloaded",
                "Name a file of text embeddings in its place: CONFIG.json:IMAGE+names.npz (see "
                "docs/backbones.md), or take one of open_clip's models: MODEL:TAG.",
            )
    if set(text.get("tokenizer_kwargs") or {}) - {"clean"}:
        raise RequestError(
            f"{path}: tokenizer_kwargs has more than 'clean': {text['tokenizer_kwargs']!r:.60}",
            "Only towers with open_clip's usual tokenizer can be read with a config of their own.",
        )
    words = text.get("vocab_size", TOKENS)
    if type(words) is not int or words < TOKENS:
        raise RequestError(
            f"{path}: vocab_size is {words!r:.60}, but open_clip's tokenizer has {TOKENS} tokens",
            "The text tower was made for another tokenizer: name a file of text embeddings in its "
            "place, CONFIG.json:IMAGE+names.npz (see docs/backbones.md).",
        )


def _statistics(processing: Any, path: Path) -> tuple[Colour, Colour]:
    """Mean and deviation of the pixels; OpenAI's where the file has none."""
    if not isinstance(processing, dict):
        raise DataError(f"{path}: preprocess_cfg is no object", _FORMS)
    mean, std = _OPENAI
    return (
        _colour(processing.get("mean", mean), f"{path}: mean"),
        _colour(processing.get("std", std), f"{path}: std", positive=True),
    )


def _colour(values: Any, what: str, *, positive: bool = False) -> Colour:
    numbers = [value for value in _list(values) if type(value) in (int, float)]
    good = [value for value in numbers if math.isfinite(value) and (value > 0 or not positive)]
    if len(good) != 3 or len(_list(values)) != 3:
        wanted = "three numbers above 0" if positive else "three numbers"
        raise DataError(f"{what} is {values!r:.60}, not {wanted}", _FORMS)
    red, green, blue = map(float, good)
    return red, green, blue


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else []
