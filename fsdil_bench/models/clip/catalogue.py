"""What open_clip knows: its models with their configs, and the published weights of each.

Importing open_clip takes seconds, so the answer is kept in the cache, for each of its versions.
"""

from __future__ import annotations

import copy
import json
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from fsdil_bench.cache.folder import cache_folder

#: What decides how weights of a tag are fetched and used.
_FACTS = ("hf_hub", "url", "mean", "std", "quick_gelu")


class Catalogue(NamedTuple):
    """Configs by model, and facts by model and tag."""

    models: dict[str, dict[str, Any]]
    tags: dict[str, dict[str, dict[str, Any]]]


@cache
def catalogue() -> Catalogue:
    """The models and tags of the installed open_clip."""
    path = cache_folder() / f"open-clip-{version('open_clip_torch')}.json"
    try:
        return Catalogue(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        fresh = _ask_open_clip()
    with suppress(OSError):  # it is only slower without
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(fresh._asdict()), encoding="utf-8")
        unfinished.replace(path)
    return fresh


def model_config(model: str) -> dict[str, Any] | None:
    """The config of a model, or None if there is no such model."""
    known = catalogue().models.get(model)
    if known is None and (open_clip := sys.modules.get("open_clip")):
        known = open_clip.get_model_config(model)  # registered with open_clip.add_model_config
    return copy.deepcopy(known)


def _ask_open_clip() -> Catalogue:
    import open_clip

    models = {name: open_clip.get_model_config(name) for name in open_clip.list_models()}
    tags: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in models}
    for name, tag in open_clip.list_pretrained():
        card = open_clip.get_pretrained_cfg(name, tag)
        tags.setdefault(name, {})[tag] = {fact: card[fact] for fact in _FACTS if fact in card}
    return Catalogue(models, tags)
