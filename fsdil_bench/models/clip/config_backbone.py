"""Backbones of files with a model configuration of their own, for towers that somebody has trained.

This and what it adds has files of its own because the code behind the names of other backbones is
part of the ids of their runs.
"""

from __future__ import annotations

from functools import cached_property
from importlib import metadata
from typing import Any

import torch

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.frozen_embeddings import Tokenizer

from .architecture import Architecture
from .checkpoint import read_checkpoint
from .checksums import combined, file_sha256
from .config_file import image_config
from .config_names import Configured, resolve
from .known_texts import KnownTexts, read_known_texts
from .loading import build_image_side, build_model, merge


def build(name: str) -> Backbone:
    """The backbone `CONFIG.json:WEIGHTS`, described and not built."""
    plan = resolve(name)
    design = plan.architecture
    known = known_texts_of(plan)
    image, *text = [source.file for source in (plan.image, plan.text) if source]
    hashes = [file_sha256(file) for file in (image, *text)]
    pixels = {"mean": design.mean, "std": design.std}

    def build_it() -> torch.nn.Module:
        state = read_checkpoint(image)
        if text and known is None:
            state = merge(state, read_checkpoint(text[0]))
        try:
            if known is not None:
                return build_image_side(design, state, str(plan), known.logit_scale)
            return build_model(design, state, str(plan))
        except DataError as error:
            raise DataError(
                error.message, f"{error.remedy}\nThe model is the one in {plan.config}."
            ) from error

    return Backbone(
        str(plan),
        build=build_it,
        weights_hash=combined(*hashes, {"config": design.config} | pixels),
        image=ImageSpec(design.image_size, design.mean, design.std),
        embed_dim=design.embed_dim,
        tokenizer=None if known is not None else ConfigTokenizer(design),
        known_texts=known,
        # Without the name of the config: what it says of texts makes no difference to images.
        image_tower=(
            str(plan.image),
            combined(hashes[0], {"config": image_config(design.config)} | pixels),
        ),
        notes=_notes(plan, hashes),
    )


def known_texts_of(plan: Configured) -> KnownTexts | None:
    """The table of embeddings that stands for a text tower, if the text side is one."""
    if not plan.table or plan.text is None:
        return None
    known, width = read_known_texts(plan.text.file), plan.architecture.embed_dim
    if known.width != width:
        raise DataError(
            f"embeddings of {known.source} have {known.width} numbers, but embed_dim of "
            f"{plan.config} is {width}",
            "Use embeddings that the text tower of this very model made.",
        )
    return known


class ConfigTokenizer:
    """open_clip's usual tokenizer, as a config wants it; imported when the first text comes."""

    def __init__(self, design: Architecture) -> None:
        self._design = design
        self.version = f"open_clip_torch {metadata.version('open_clip_torch')}"

    def __call__(self, texts: list[str]) -> torch.Tensor:
        """Token ids, (n, length)."""
        return self._loaded(texts)

    @cached_property
    def _loaded(self) -> Tokenizer:
        from open_clip import SimpleTokenizer

        text: dict[str, Any] = self._design.config["text_cfg"]
        try:
            tokenizer: Tokenizer = SimpleTokenizer(
                context_length=text.get("context_length", 77), **text.get("tokenizer_kwargs") or {}
            )
        except Exception as error:
            raise RequestError(
                f"open_clip makes no tokenizer from {self._design.model}: "
                f"{type(error).__name__}: {error}",
                "Check its text_cfg.",
            ) from error
        return tokenizer


def _notes(plan: Configured, hashes: list[str]) -> dict[str, Any]:
    sides = {"image": plan.image, "text": plan.text} if plan.text else {"weights": plan.image}
    files = {"config": (plan.config.name, file_sha256(plan.config))} | {
        side: (str(source), digest)
        for (side, source), digest in zip(sides.items(), hashes, strict=True)
    }
    return {side: {"from": name, "sha256": digest} for side, (name, digest) in files.items()}
