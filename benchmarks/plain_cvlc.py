"""CVLC written the plain way, as a yardstick for speed, memory and correctness.

The same computation as `fsdil_methods.cvlc`, without any of its savings: texts padded to the full
context, every text of every template and synonym encoded at every step, attention as explicit
matrix products, plain views encoded again in every pass, no cached features, nothing folded, and
an oracle pass over all images. The towers are run here block by block, not by the harness.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fsdil_methods.cvlc.calibration import embed_text, embed_vision
from fsdil_methods.cvlc.method import CVLC, Views
from fsdil_methods.cvlc.text_prototypes import text_prototypes
from fsdil_methods.cvlc.visual_prototypes import logits, passes
from torch import Tensor

from fsdil_bench import Batch, TrainDomain

_CHUNK = 64


def attention(layer: Any, x: Tensor, adapter: Any, mask: Tensor | None) -> Tensor:
    batch, length, width = x.shape
    heads, size = layer.num_heads, width // layer.num_heads
    q, k, v = F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    q, k, v = (y.view(batch, length, heads, size).transpose(1, 2) for y in (q, k, v))
    q, v = q @ adapter.query, v @ adapter.value
    scores = q @ k.transpose(-1, -2) / size**0.5
    if mask is not None:
        scores = scores + mask
    out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
    return F.linear(out, layer.out_proj.weight, layer.out_proj.bias)


def blocks(tower: Any, x: Tensor, adapters: list[Any], mask: Tensor | None = None) -> Tensor:
    for block, adapter in zip(tower.transformer.resblocks, adapters, strict=True):
        x = x + attention(block.attn, block.ln_1(x), adapter, mask)
        x = x + block.mlp(block.ln_2(x))
    return x


def encode_images(visual: Any, pixels: Tensor, adapters: list[Any]) -> Tensor:
    x = visual.conv1(pixels).flatten(2).transpose(1, 2)
    first = visual.class_embedding.expand(len(x), 1, -1)
    x = visual.ln_pre(torch.cat([first, x], 1) + visual.positional_embedding)
    return visual.ln_post(blocks(visual, x, adapters)[:, 0]) @ visual.proj


def encode_texts(model: Any, tokens: Tensor, adapters: list[Any]) -> Tensor:
    parts = []
    for chunk in tokens.split(_CHUNK):
        x = model.token_embedding(chunk) + model.positional_embedding
        x = blocks(model, x, adapters, model.attn_mask)
        last = x[torch.arange(len(x)), chunk.argmax(-1)]
        parts.append(model.ln_final(last) @ model.text_projection)
    return torch.cat(parts)


class PlainCVLC(CVLC):
    """The same method without savings."""

    def _embed_training(self, images: Tensor, t: int, checkpoint: bool) -> Tensor:
        del checkpoint
        raw = encode_images(self.visual, images, self.weights.vision_adapters(t))
        return embed_vision(raw, self.weights.domain(t).calibration, self.weights.base_shift(t))

    def _encode(self, images: Tensor, adapters: list[Any]) -> Tensor:
        with torch.no_grad():
            parts = [encode_images(self.visual, part, adapters) for part in images.split(_CHUNK)]
        return F.normalize(torch.cat(parts), dim=-1)

    def frozen(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            parts = [self.context.backbone.model.visual(part) for part in images.split(_CHUNK)]
        return F.normalize(torch.cat(parts), dim=-1)

    def _text(self, t: int, checkpoint: bool = False) -> Tensor:
        del checkpoint
        context, weights, config = self.context, self.weights, self.config
        adapters, calibration = weights.text_adapters(t), weights.domain(t).calibration
        tokenizer: Any = context.backbone.tokenizer

        def embed(words: list[str]) -> Tensor:
            texts = [each.replace("{}", word) for word in words for each in config.templates]
            raw = encode_texts(context.backbone.model, tokenizer(texts), adapters)
            e = embed_text(raw, calibration, weights.text_shift, weights.base_shift(t))
            return e.view(len(words), len(config.templates), -1)

        names = embed(list(context.class_names))
        if not config.synonyms:
            return text_prototypes(names)
        with torch.no_grad():
            others = torch.stack([embed(list(words)) for words in context.synonyms])
        return text_prototypes(names, others, calibration.synonym_share, config.tau)

    def _final_text(self, t: int) -> Tensor:
        with torch.no_grad():
            return self._text(t)

    def _views(self, domain: TrainDomain, *, statistics: bool = True) -> Views:
        t = domain.index
        adapters = self.weights.vision_adapters(t)
        repeats = passes(max(1, len(domain) // self.classes), self.config.least_views) if t else 1
        parts = []
        for augment in (False, True) if t else (False,):
            for batch in domain.batches(_CHUNK, augment=augment, shuffle=False, epochs=repeats):
                raw = self._encode(batch.images, adapters)
                frozen = self.frozen(batch.images) if statistics else raw[:, :0]
                with torch.no_grad():
                    z = self._calibrated(raw, t)
                parts.append(Views(batch.labels, torch.ones(len(z)), z, frozen))
        return Views(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _calibrated(self, raw: Tensor, t: int) -> Tensor:
        return embed_vision(raw, self.weights.domain(t).calibration, self.weights.base_shift(t))

    @torch.no_grad()
    def evaluate(self, images: Tensor, truth: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Domains, classes, and classes under the true domains, each from a separate pass."""
        seen = range(len(self.prototypes))
        prototypes = [self._fused(t, self.prototypes[t], self._text(t)) for t in seen]
        domains = self.predict_domain(Batch(features=self.frozen(images)))

        def classes(given: Tensor) -> Tensor:
            result = torch.zeros_like(given)
            for t in seen:
                rows = given == t
                if rows.any():
                    z = self._calibrated(
                        self._encode(images[rows], self.weights.vision_adapters(t)), t
                    )
                    result[rows] = logits(z, prototypes[t], 0.0).argmax(1)
            return result

        return domains, classes(domains), classes(truth)
