"""Backbones of open_clip: described from names and files, built when first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.frozen_embeddings import Tokenizer

from .architecture import Architecture, architecture
from .checkpoint import Tensors, read_checkpoint
from .checksums import combined, file_sha256
from .known_texts import KnownTexts, holds_known_texts, read_known_texts
from .loading import build_image_side, build_model, merge
from .names import Resolved, Source, resolve
from .published import Published


def build(name: str) -> Backbone:
    """The backbone `MODEL:WEIGHTS`; weights of a tag are downloaded the first time."""
    plan = resolve(name)
    image, *text = (_local_file(plan, source) for source in (plan.image, plan.text) if source)
    if holds_known_texts(image):
        raise RequestError(
            f"{image} holds text embeddings, no image tower",
            "Name the weights of the image tower before it: MODEL:IMAGE+TEXT.",
        )
    known = read_known_texts(text[0]) if text and holds_known_texts(text[0]) else None
    hashes = [file_sha256(file) for file in (image, *text)]
    particulars = [plan.architecture.particulars] if plan.architecture.particulars else []

    def weights() -> Tensors:
        first = read_checkpoint(image)
        return merge(first, read_checkpoint(text[0])) if text and known is None else first

    return open_clip_backbone(
        str(plan),
        plan.architecture,
        weights=weights,
        weights_hash=combined(*hashes, *particulars),
        text_tower=known is None,
        known_texts=known,
        image_tower=(plan.image_name, combined(hashes[0], *particulars)),
        notes=_notes(plan, hashes),
    )


def open_clip_backbone(
    name: str,
    model: str | Architecture,
    *,
    weights: Callable[[], Tensors],
    weights_hash: str,
    text_tower: bool = True,
    known_texts: KnownTexts | None = None,
    image_tower: tuple[str, str] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Backbone:
    """A backbone with an architecture of open_clip and weights from anywhere, for plugins.

    `weights` returns all tensors under open_clip's names. Without `text_tower` those of the image
    tower are enough, and texts are looked up in `known_texts`, if there are any.
    """
    design = architecture(model) if isinstance(model, str) else model
    if known_texts is not None and known_texts.width != design.embed_dim:
        raise DataError(
            f"embeddings of {known_texts.source} have {known_texts.width} numbers, those of "
            f"{design.model} {design.embed_dim}",
            "Use embeddings that the text tower of this very model made.",
        )

    def build_it() -> torch.nn.Module:
        if text_tower:
            return build_model(design, weights(), name)
        scale = known_texts.logit_scale if known_texts is not None else None
        return build_image_side(design, weights(), name, scale)

    return Backbone(
        name,
        build=build_it,
        weights_hash=weights_hash,
        image=ImageSpec(design.image_size, design.mean, design.std),
        embed_dim=design.embed_dim,
        tokenizer=OpenClipTokenizer(design) if text_tower else None,
        known_texts=known_texts,
        image_tower=image_tower,
        notes=notes,
    )


def _local_file(plan: Resolved, source: Source) -> Path:
    return Published(plan.architecture.model, source.tag).fetch() if source.tag else source.file


def _notes(plan: Resolved, hashes: list[str]) -> dict[str, Any]:
    sides = {"image": plan.image, "text": plan.text} if plan.text else {"weights": plan.image}
    return {"model": plan.architecture.model} | {
        side: {"from": str(source), "sha256": digest}
        for (side, source), digest in zip(sides.items(), hashes, strict=True)
    }


class OpenClipTokenizer:
    """The tokenizer of a model of open_clip, which is imported when the first text comes."""

    def __init__(self, design: Architecture) -> None:
        self._design = design
        self.version = f"open_clip_torch {metadata.version('open_clip_torch')}"

    def __call__(self, texts: list[str]) -> torch.Tensor:
        """Token ids, (n, length)."""
        return self._loaded(texts)

    @cached_property
    def _loaded(self) -> Tokenizer:
        import open_clip

        design = self._design
        try:
            tokenizer: Tokenizer = open_clip.get_tokenizer(
                f"local-dir:{design.folder}" if design.folder else design.model
            )
        except Exception as error:
            raise RequestError(
                f"{design.model} has no tokenizer here: {type(error).__name__}: {error}",
                "Some models need the package transformers, and their tokenizer's files.",
            ) from error
        return tokenizer
