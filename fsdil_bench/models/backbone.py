"""The frozen vision-language model a method starts from.

A plugin describes the model (`Backbone(...)`) without building it; the harness places it on a
device. The model itself is built when first needed: a run whose features are all cached never
pays for it. Embeddings are unit vectors in the joint space.

The text side is a tower with its tokenizer, or a table of texts embedded elsewhere (`KnownTexts`),
or nothing.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.plugins.code_hash import code_behind

from .device import full_precision

if TYPE_CHECKING:
    from fsdil_bench.cache.array_store import ArrayStore

    from .clip.known_texts import KnownTexts

Tokenizer = Callable[[list[str]], torch.Tensor]

_KEPT_BATCH = 32  # images or texts per pass where embeddings are kept: many enough for any GPU
_CUDA_BATCH, _OTHER_BATCH = 256, 32


class Backbone:
    """A CLIP-like model with open_clip's interface (`encode_image`, `encode_text`, `visual`).

    `weights_hash` tells apart whatever embeds differently under one name. Where several backbones
    share an image tower, `image_tower` is its own name and hash, and they share its features.
    `notes` are for the record: JSON types, no paths.
    """

    def __init__(
        self,
        name: str,
        *,
        build: Callable[[], torch.nn.Module],
        weights_hash: str,
        image: ImageSpec,
        embed_dim: int,
        tokenizer: Tokenizer | None = None,
        known_texts: KnownTexts | None = None,
        image_tower: tuple[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.weights_hash = weights_hash
        self.image = image
        self.embed_dim = embed_dim
        self.tokenizer = tokenizer
        self.known_texts = known_texts
        self.image_tower = image_tower or (name, weights_hash)
        self.code = ""  # a hash of the plugin's code, told by the harness: part of cache keys
        self.device = torch.device("cpu")
        self.precision = "fp32"
        self.say: Callable[[str], None] = lambda text: None
        self._batch_size: int | None = None
        self._too_large: int | None = None
        self._build = build
        self._model: torch.nn.Module | None = None
        self._untouched: list[tuple[int, int]] = []
        self._texts: ArrayStore | None = None
        self._ask_texts: Callable[[list[str]], torch.Tensor] | None = None
        self._class_names: tuple[str, ...] = ()
        self._notes = dict(notes or {})
        self._logit_scale: float | None = None

    @property
    def has_text(self) -> bool:
        """Whether class names can be embedded."""
        return self.tokenizer is not None or self.known_texts is not None

    @property
    def tokenizer_version(self) -> str:
        """A hash of the tokenizer's code, and its own word on its version if it has one."""
        if self.tokenizer is None:
            return ""
        return f"{code_behind(self.tokenizer)} {getattr(self.tokenizer, 'version', '')}".rstrip()

    @property
    def notes(self) -> dict[str, Any]:
        """What the record says about the weights, and about texts that were looked up."""
        looked_up = {"texts": self.known_texts.notes()} if self.known_texts is not None else {}
        return self._notes | looked_up

    @property
    def batch_size(self) -> int:
        """Images per forward pass: as many as were asked for, else as suit the device; fewer once
        memory has run out."""
        usual = _CUDA_BATCH if self.device.type == "cuda" else _OTHER_BATCH
        return self._batch_size or usual

    @property
    def model(self) -> torch.nn.Module:
        """The model, built on first use: in eval mode, on the device, without gradients."""
        if self._model is None:
            # Whether a run builds the model, and when, depends on what is cached: the random
            # numbers that this takes must not be missing elsewhere. What is built in inference
            # mode can never be trained, whoever asks for it later.
            with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
                model = self._build()
                model = model.to(self.device).eval().requires_grad_(False)
            self._model = model
            self._untouched = _versions(model)
        return self._model

    @property
    def logit_scale(self) -> float:
        """The factor on cosine similarities that the model was trained with."""
        if self._logit_scale is None:
            self._logit_scale = float(self.model.logit_scale.exp())  # type: ignore[operator]
        return self._logit_scale

    def place(
        self,
        device: torch.device,
        precision: str,
        texts: ArrayStore | None,
        class_names: Sequence[str] = (),
        batch_size: int | None = None,
    ) -> None:
        """Say where to compute, how precisely, where text embeddings are kept, what classes the
        run is about, and how many images go through a tower at a time."""
        if self._model is not None:
            self._model.to(device)
            self._untouched = _versions(self._model)
        self.device, self.precision, self._texts = device, precision, texts
        self._class_names = tuple(class_names)
        self._batch_size = batch_size

    def ask_for_texts(self, ask: Callable[[list[str]], torch.Tensor]) -> None:
        """Have texts embedded by someone else: in a sealed run, by the harness."""
        self._ask_texts = ask

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The context in which the run's precision is in force. (TF32 is in force everywhere.)"""
        if self.precision != "bf16":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def visual_copy(self) -> torch.nn.Module:
        """A trainable copy of the image tower."""
        with torch.inference_mode(False):
            tower = copy.deepcopy(self.model.visual)
        assert isinstance(tower, torch.nn.Module)
        return tower.requires_grad_(True)

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Unit embeddings of normalised images by the frozen tower, in fp32 like those kept."""
        return self._frozen(pixels)

    def frozen_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """The embeddings that are kept for all runs: in batches padded to one size, so that they
        do not depend on the other images of a batch."""
        return self._frozen(pixels, _KEPT_BATCH)

    @torch.no_grad()
    def _frozen(self, pixels: torch.Tensor, padded: int | None = None) -> torch.Tensor:
        self.check_untouched("the image tower")

        def embed(rows: slice, size: int) -> torch.Tensor:
            part = pixels[rows].to(self.device)
            whole = _padded(part, size if padded else 1)
            with full_precision(self.device):
                return self.model.encode_image(whole)[: len(part)]  # type: ignore[operator]

        parts = self._passes(embed, len(pixels), padded)
        return F.normalize(torch.cat(list(parts)).float(), dim=-1)

    def embed_with(
        self, encode: Callable[[torch.Tensor], torch.Tensor], pixels: torch.Tensor
    ) -> torch.Tensor:
        """Unit embeddings by `encode`, a tower trained or adapted by a method, without gradients:
        in batches that fit the device (`batch_size`), in the run's precision."""
        return F.normalize(self.run_with(encode, pixels), dim=-1)

    def run_with(
        self, encode: Callable[..., torch.Tensor], pixels: torch.Tensor, *others: torch.Tensor
    ) -> torch.Tensor:
        """What `encode` gives as it is, not scaled to unit length; else like `embed_with`.

        `others` are handed to `encode`, too: tensors with one row for every image.
        """

        def run(rows: slice, size: int) -> torch.Tensor:
            del size
            parts = [_padded(each[rows].to(self.device), 1) for each in (pixels, *others)]
            with torch.no_grad(), self.autocast():
                return encode(*parts)[: len(pixels[rows])].float()

        return torch.cat(list(self._passes(run, len(pixels))))

    def _passes(
        self, run: Callable[[slice, int], torch.Tensor], count: int, most: int | None = None
    ) -> Iterator[torch.Tensor]:
        """The outputs for one part of `count` rows after the other, at least for one.

        `run` gets the rows and the batch size, which is at most `most`. Where memory runs out, the
        batch size is halved for the rest of the run.
        """
        start = 0
        while True:
            size = min(self.batch_size, most or self.batch_size)
            found: torch.Tensor | None = None
            with contextlib.suppress(torch.OutOfMemoryError):
                found = run(slice(start, min(start + size, count)), size)
            # Here, unlike where the error is handled, a failed pass holds no memory any more.
            if found is None:
                self._halve(size)
                continue
            if self._too_large is not None:
                self.say(
                    f"warning: {self._too_large} images at a time do not fit into the memory of"
                    f" {self.device}; going on with {size} (--batch-size {size})"
                )
                self._too_large = None
            yield found
            start += size
            if start >= count:
                return

    def _halve(self, size: int) -> None:
        if size == 1:
            raise RequestError(
                f"a single image does not fit into the memory of {self.device}",
                "Free some of it (nvidia-smi shows who has it), use --device cpu or a smaller "
                "--backbone.",
            )
        self._too_large = self._too_large or size
        self._batch_size = size // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit embeddings of texts; each text is embedded once and then remembered."""
        if self._ask_texts is not None:
            return self._ask_texts(list(texts)).to(self.device)
        if self.known_texts is not None:
            found = self.known_texts.embed(texts, self._class_names)
            return torch.from_numpy(found).to(self.device)
        if self.tokenizer is None:
            raise RequestError(
                f"backbone '{self.name}' has no text tower", "Choose one that has, with --backbone."
            )
        distinct = list(dict.fromkeys(texts))
        if self._texts is None:
            known = self._embed_texts(distinct)
        else:
            known = self._texts.fill(distinct, self._embed_parts, self.batch_size)
        stacked = np.stack([known[text] for text in texts])
        return torch.from_numpy(stacked).to(self.device)

    def _embed_parts(self, parts: Iterable[list[str]]) -> Iterator[dict[str, np.ndarray]]:
        return map(self._embed_texts, parts)

    def _embed_texts(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Embeddings to keep: see `frozen_features`."""
        assert self.tokenizer is not None
        self.check_untouched("the text tower")
        tokenize = self.tokenizer

        def embed(rows: slice, size: int) -> torch.Tensor:
            part = texts[rows]
            tokens = tokenize(part + [""] * (size - len(part))).to(self.device)
            with full_precision(self.device):
                return self.model.encode_text(tokens)[: len(part)]  # type: ignore[operator]

        raw = torch.cat(list(self._passes(embed, len(texts), _KEPT_BATCH)))
        unit = F.normalize(raw.float(), dim=-1).cpu().numpy()
        return dict(zip(texts, unit, strict=True))

    def check_untouched(self, what: str = "the model") -> None:
        """Refuse to go on once a method has changed the shared weights in place: the caches would
        hand its features to every other method."""
        if self._model is not None and _versions(self._model) != self._untouched:
            raise PluginError(
                f"{what} of backbone '{self.name}' was changed in place",
                "A method must train a copy (backbone.visual_copy()), never backbone.model.",
            )


def file_name(backbone: str) -> str:
    """The name of a backbone as part of a file's name."""
    return re.sub(r"[^\w.-]+", "_", backbone)[:100]


def _padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """At least `count` rows: some are zeros, if need be."""
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, max(0, count - len(rows))))


def _versions(model: torch.nn.Module) -> list[tuple[int, int]]:
    """Identity and change counter of every weight: torch counts in-place changes."""
    tensors = [*model.parameters(), *model.buffers()]
    return [(tensor.data_ptr(), tensor._version) for tensor in tensors]
