"""The frozen vision-language model that a method starts from.

A plugin describes the model (`Backbone(...)`) without building it; the harness places it on a
device. The model itself is built when first needed: a run whose features are all cached never
pays for it. Embeddings are unit vectors in the joint space.

The text side is a tower with its tokenizer, or a table of texts embedded elsewhere (`KnownTexts`),
or nothing.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from fsdil_bench.data.transforms import ImageSpec
from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.plugins.code_hash import code_behind

from .batches import Batches, padded
from .checkpointing import Checkpointing, kept_bytes
from .compiling import compile_blocks, not_compiled
from .frozen_embeddings import Tokenizer, embed_images, embed_texts
from .weight_guard import WeightGuard

if TYPE_CHECKING:
    from fsdil_bench.cache.array_store import ArrayStore

    from .clip.known_texts import KnownTexts


class Backbone:
    """A CLIP-like model with open_clip's interface (`encode_image`, `encode_text`, `visual`).

    `weights_hash` distinguishes backbones that have one name and embed differently. Where several
    backbones share an image tower, `image_tower` is its own name and hash, and they share its
    features. `notes` are for the record: JSON types, no paths.
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
        self.code = ""  # a hash of the plugin's code, set by the harness: part of cache keys
        self.device = torch.device("cpu")
        self.precision = "fp32"
        self.say: Callable[[str], None] = lambda text: None
        self._batches = Batches(self.device)
        self._checkpointing = Checkpointing("auto", self.device)
        self._compiles = False
        self._build = build
        self._model: torch.nn.Module | None = None
        self._guard: WeightGuard | None = None
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
        """A hash of the tokenizer's code, with the version that it states itself, if any."""
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
        return self._batches.size

    @property
    def model(self) -> torch.nn.Module:
        """The model, built on first use: in eval mode, on the device, without gradients."""
        if self._model is None:
            # Whether a run builds the model, and when, depends on what is cached. So building must
            # not advance the global generator. And tensors made in inference mode could never be
            # trained later.
            with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
                model = self._build()
                model = model.to(self.device).eval().requires_grad_(False)
                if self.device.type == "cuda":
                    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self._model = model
            self._guard = WeightGuard(model)
            if self._compiles:
                compile_blocks(model.visual, model)
        return self._model

    @property
    def built(self) -> bool:
        """Whether the model was needed so far."""
        return self._model is not None

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
        checkpointing: str = "auto",
        compiles: bool = False,
    ) -> None:
        """Set where to compute, how precisely, where text embeddings are kept, what classes the
        run is about, how many images go through a tower at a time, whether training steps
        recompute activations, and whether towers are compiled."""
        if self._model is not None:
            self._model.to(device)
            self._guard = WeightGuard(self._model)
        self.device, self.precision, self._texts = device, precision, texts
        self._class_names = tuple(class_names)
        self._batches = Batches(device, batch_size)
        self._checkpointing = Checkpointing(checkpointing, device)
        self._compiles = compiles

    def ask_for_texts(self, ask: Callable[[list[str]], torch.Tensor]) -> None:
        """Let `ask` embed texts: in a sealed run, the harness does it."""
        self._ask_texts = ask

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """A context that applies the run's precision. (TF32 applies everywhere in a run.)"""
        if self.precision != "bf16":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def checkpoint(
        self, *, images: int = 0, text_tokens: int = 0, all_weights: bool = False
    ) -> bool:
        """Whether a training step should compute activations again in its backward pass (the
        `checkpoint` of `fsdil_bench.adapters`) instead of keeping them.

        As `--checkpointing` says; `auto` does where a step through so many images and tokens of
        text would not fit into the memory of the device. `all_weights` if the towers themselves are
        trained and not additions to them. No result depends on it.
        """
        counts = {"images": images, "text_tokens": text_tokens}
        return self._checkpointing.wanted(kept_bytes(self.model, **counts, all_weights=all_weights))

    def visual_copy(self) -> torch.nn.Module:
        """A trainable copy of the image tower; it uses checkpoints where `checkpoint` says so."""
        with torch.inference_mode(False):
            tower = copy.deepcopy(self.model.visual)
        assert isinstance(tower, torch.nn.Module)
        if self._compiles:
            compile_blocks(tower)

        def decide(tower: Any, given: tuple[torch.Tensor, ...]) -> None:
            trains = torch.is_grad_enabled() and bool(given)
            tower.set_grad_checkpointing(
                trains and self.checkpoint(images=len(given[0]), all_weights=True)
            )

        # Not a bound method: whoever copies the tower would copy this backbone as well.
        if hasattr(tower, "set_grad_checkpointing"):
            tower.register_forward_pre_hook(decide)
        return tower.requires_grad_(True)

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Unit embeddings of normalised images by the frozen tower, in fp32 like those kept."""
        self.check_untouched("the image tower")
        with self._as_kept():
            return embed_images(self.model, pixels, self._batches, self.say, kept=False)

    def frozen_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """The embeddings that are kept for all runs: in batches padded to one size, so that they
        do not depend on the other images of a batch."""
        self.check_untouched("the image tower")
        with self._as_kept():
            return embed_images(self.model, pixels, self._batches, self.say, kept=True)

    def embed_with(
        self, encode: Callable[[torch.Tensor], torch.Tensor], pixels: torch.Tensor
    ) -> torch.Tensor:
        """Unit embeddings by `encode`, a tower trained or adapted by a method, without gradients:
        in batches that fit the device (`batch_size`), in the run's precision."""
        return F.normalize(self.run_with(encode, pixels), dim=-1)

    def run_with(
        self, encode: Callable[..., torch.Tensor], pixels: torch.Tensor, *others: torch.Tensor
    ) -> torch.Tensor:
        """What `encode` returns, not scaled to unit length; else like `embed_with`.

        `others` are passed to `encode`, too: tensors with one row for every image.
        """

        def run(rows: slice, size: int) -> torch.Tensor:
            del size
            parts = [padded(each[rows].to(self.device), 1) for each in (pixels, *others)]
            with torch.no_grad(), self.autocast():
                return encode(*parts)[: len(pixels[rows])].float()

        return self._batches.run(run, len(pixels), self.say)

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
            known = self._texts.fill(
                distinct, lambda parts: map(self._embed_texts, parts), self.batch_size
            )
        stacked = np.stack([known[text] for text in texts])
        return torch.from_numpy(stacked).to(self.device)

    def _embed_texts(self, texts: list[str]) -> dict[str, np.ndarray]:
        assert self.tokenizer is not None
        self.check_untouched("the text tower")
        with self._as_kept():
            return embed_texts(self.model, self.tokenizer, texts, self._batches, self.say)

    def _as_kept(self) -> contextlib.AbstractContextManager[Any]:
        """What is kept for all runs is computed in the same way in all of them."""
        return not_compiled() if self._compiles else contextlib.nullcontext()

    def check_untouched(self, what: str = "the model") -> None:
        """Raise an error if a method has changed the shared weights in place: the caches would
        pass its features on to every other method."""
        if self._guard is not None and self._guard.changed():
            raise PluginError(
                f"{what} of backbone '{self.name}' was changed in place",
                "A method must train a copy (backbone.visual_copy()), never backbone.model.",
            )
