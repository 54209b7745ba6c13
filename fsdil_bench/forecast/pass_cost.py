"""What one image or one token costs in the towers of a backbone.

Floating-point operations are counted by torch's own counter while the model runs on the meta
device, where tensors have shapes and no content: any backbone takes a second, and needs no weights.
The bytes that a training step keeps for its backward pass are counted the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fsdil_bench.models.backbone import Backbone

_UNKNOWN_BLOCKS = 4  # of a tower that is not made of transformer blocks
_MANY = 1 << 16  # more tokens than a vocabulary of unknown size has
_LIVE_WIDTHS = 12  # numbers per token and width that a block holds at a time without gradients


@dataclass(frozen=True)
class TowerCost:
    """One tower: its shape, and what one unit costs (an image, or a token of a text).

    `forward`, `backward` (gradients of activations) and `weight_backward` (those of weights, in
    addition) are floating-point operations. `kept` and `kept_training` are bytes that wait for the
    backward pass, with frozen and with trained weights; `live` those at work without gradients.
    """

    blocks: int
    tokens: int
    forward: float
    backward: float
    weight_backward: float
    kept: float
    kept_training: float
    live: float
    weight_bytes: int


@dataclass(frozen=True)
class PassCost:
    """Both towers of a backbone; `text` is None where it has no text tower, and `vocabulary` the
    number of its tokens."""

    image: TowerCost
    text: TowerCost | None
    embed_dim: int
    vocabulary: int = 0


def pass_cost(backbone: Backbone) -> PassCost:
    """Count a pass of an image and of a text through a backbone."""
    model = on_meta(backbone)
    size = backbone.image.size
    pixels = torch.zeros(1, 3, size, size, device="meta")
    visual: Any = model.visual
    image = _count(model, visual, model.encode_image, pixels, 1, image_tokens(visual))
    text, vocabulary = None, 0
    if backbone.tokenizer is not None:
        tower: Any = getattr(model, "text", model)
        length = int(backbone.tokenizer(["a"]).shape[1])
        tokens = torch.zeros(1, length, dtype=torch.long, device="meta")
        text = _count(model, tower, model.encode_text, tokens, length, length, without=visual)
        vocabulary = getattr(getattr(tower, "token_embedding", None), "num_embeddings", _MANY)
    return PassCost(image, text, backbone.embed_dim, vocabulary)


def on_meta(backbone: Backbone) -> Any:
    """The model of a backbone, without its weights."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weights that are read have no place to go
        try:
            with torch.device("meta"):
                model = backbone._build()
        except (RuntimeError, NotImplementedError):  # it reads weights into what it has built
            model = backbone._build()
    return model.to("meta").eval()


def tower_blocks(tower: Any) -> int:
    """The number of a tower's transformer blocks."""
    with suppress(AttributeError):
        return len(tower.transformer.resblocks)
    return _UNKNOWN_BLOCKS


def image_tokens(visual: Any) -> int:
    """The tokens of an image; 1 where a tower has none."""
    embedding = getattr(visual, "positional_embedding", None)
    return len(embedding) if torch.is_tensor(embedding) and embedding.ndim == 2 else 1


def _count(
    model: Any,
    tower: Any,
    encode: Callable[[torch.Tensor], torch.Tensor],
    given: torch.Tensor,
    units: int,
    tokens: int,
    without: Any = None,
) -> TowerCost:
    """Count one pass of `given`, which holds so many units."""
    model.requires_grad_(True)
    forward, everything, kept_training = _pass(model, encode, given, tokens)
    # With frozen weights something else must ask for gradients: what enters the first block.
    model.requires_grad_(False)
    start = getattr(tower, "positional_embedding", None)
    if isinstance(start, torch.nn.Parameter):
        start.requires_grad_(True)
    elif given.is_floating_point():
        given = given.clone().requires_grad_(True)
    _, backward, kept = _pass(model, encode, given, tokens)
    model.requires_grad_(False)
    other = {id(weight) for weight in without.parameters()} if without is not None else set()
    weights = [weight for weight in tower.parameters() if id(weight) not in other]
    width = getattr(getattr(tower, "transformer", None), "width", 0) or 768
    return TowerCost(
        blocks=tower_blocks(tower),
        tokens=tokens,
        forward=forward / units,
        backward=backward / units,
        weight_backward=max(0.0, everything - backward) / units,
        kept=kept / units,
        kept_training=kept_training / units,
        live=4.0 * _LIVE_WIDTHS * width * tokens / units,
        weight_bytes=sum(weight.numel() * 4 for weight in weights),
    )


def _pass(
    model: torch.nn.Module,
    encode: Callable[[torch.Tensor], torch.Tensor],
    given: torch.Tensor,
    tokens: int,
) -> tuple[int, int, int]:
    """Operations forward and backward, and bytes kept in between."""
    weights = {weight.untyped_storage()._cdata for weight in model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        # Matrices of attention are not kept: only on this device they are written out.
        if tuple(tensor.shape[-2:]) != (tokens, tokens):
            storage = tensor.untyped_storage()
            if storage._cdata not in weights:
                kept[storage._cdata] = storage.nbytes()
        return tensor

    counter = FlopCounterMode(display=False)
    with counter, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        embedding = encode(given)
        forward = counter.get_total_flops()
        if embedding.requires_grad:
            embedding.sum().backward()
    model.zero_grad(set_to_none=True)
    return forward, counter.get_total_flops() - forward, sum(kept.values())
