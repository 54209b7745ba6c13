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

from .errors import PluginError, RequestError
from .transforms import ImageSpec

if TYPE_CHECKING:
    from .clip.known_texts import KnownTexts
    from .store import ArrayStore

Tokenizer = Callable[[list[str]], torch.Tensor]


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
        self.device = torch.device("cpu")
        self.precision = "fp32"
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
    def notes(self) -> dict[str, Any]:
        """What the record says about the weights, and about texts that were looked up."""
        looked_up = {"texts": self.known_texts.notes()} if self.known_texts is not None else {}
        return self._notes | looked_up

    @property
    def batch_size(self) -> int:
        """Images per forward pass. Batches are padded to it, so that an embedding does not
        depend, to the last bit, on which other images were embedded with it."""
        return 256 if self.device.type == "cuda" else 32

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
    ) -> None:
        """Say where to compute, how precisely, where text embeddings are kept, and what classes
        the run is about."""
        if self._model is not None:
            self._model.to(device)
            self._untouched = _versions(self._model)
        self.device, self.precision, self._texts = device, precision, texts
        self._class_names = tuple(class_names)

    def ask_for_texts(self, ask: Callable[[list[str]], torch.Tensor]) -> None:
        """Have texts embedded by someone else: in a sealed run, by the harness."""
        self._ask_texts = ask

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The context in which the run's precision is in force."""
        if self.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def visual_copy(self) -> torch.nn.Module:
        """A trainable copy of the image tower."""
        with torch.inference_mode(False):
            tower = copy.deepcopy(self.model.visual)
        assert isinstance(tower, torch.nn.Module)
        return tower.requires_grad_(True)

    @torch.no_grad()
    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Unit embeddings of normalised images by the frozen tower."""
        self.check_untouched("the image tower")
        return self.embed_with(self.model.encode_image, pixels)  # type: ignore[arg-type]

    def embed_with(
        self, encode: Callable[[torch.Tensor], torch.Tensor], pixels: torch.Tensor
    ) -> torch.Tensor:
        """Unit embeddings by `encode`, a tower trained or adapted by a method, without gradients.

        In batches of one size, padded, and in the run's precision: see `batch_size`.
        """
        embeddings = [torch.empty(0, self.embed_dim, device=self.device)]
        embeddings += [F.normalize(raw, dim=-1) for raw in self._padded(encode, pixels)]
        return torch.cat(embeddings)

    def run_with(
        self, encode: Callable[..., torch.Tensor], pixels: torch.Tensor, *others: torch.Tensor
    ) -> torch.Tensor:
        """What `encode` gives as it is, not scaled to unit length; else like `embed_with`.

        `others` are handed to `encode`, too: tensors with one row for every image.
        """
        return torch.cat(list(self._padded(encode, pixels, *others)))

    def _padded(
        self, encode: Callable[..., torch.Tensor], *inputs: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        """The outputs for one batch after the other, without those for the padding."""
        for chunks in zip(*(rows.split(self.batch_size) for rows in inputs), strict=True):
            count = len(chunks[0])
            padded = [
                F.pad(rows.to(self.device), (0, 0) * (rows.ndim - 1) + (0, self.batch_size - count))
                for rows in chunks
            ]
            with torch.no_grad(), self.autocast():
                raw = encode(*padded)[:count]
            yield raw.float()

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
        assert self.tokenizer is not None
        self.check_untouched("the text tower")
        embeddings: dict[str, np.ndarray] = {}
        for start in range(0, len(texts), self.batch_size):
            chunk = texts[start : start + self.batch_size]
            tokens = self.tokenizer(chunk + [""] * (self.batch_size - len(chunk)))
            with self.autocast():
                raw = self.model.encode_text(tokens.to(self.device))  # type: ignore[operator]
            unit = F.normalize(raw.float(), dim=-1).cpu().numpy()
            embeddings.update(zip(chunk, unit, strict=False))
        return embeddings

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


def _versions(model: torch.nn.Module) -> list[tuple[int, int]]:
    """Identity and change counter of every weight: torch counts in-place changes."""
    tensors = [*model.parameters(), *model.buffers()]
    return [(tensor.data_ptr(), tensor._version) for tensor in tensors]
