"""Learned context in front of class names: a text classifier that gradient descent can reach.

CoOp (Zhou et al., Learning to Prompt for Vision-Language Models, 2022): the weights of class c are

    w_c = n( text([start, v_1, ..., v_M, name_c, ".", end]) )

with context vectors v in place of word embeddings, the same for all classes, and the frozen text
tower. All names are encoded as one tree of tokens, so start token and context, which no name comes
before, are encoded once for all classes.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from fsdil_bench import Context, RequestError
from fsdil_bench.adapters import encode_tree, text_tree, tower_shape

STD = 0.02  # of context vectors at the start, as in CLIP's own word embeddings


class PromptedNames:
    """The class names after `length` context vectors."""

    def __init__(self, context: Context, length: int) -> None:
        self.backbone = context.backbone
        tokens = _tokens(context, [f"{name}." for name in context.class_names])
        longest, limit = int(tokens.argmax(-1).max()) + 1, tokens.shape[1]
        if longest + length > limit:
            raise RequestError(
                f"{length} context vectors and a class name of {longest - 2} tokens do not fit: "
                f"the text tower of '{self.backbone.name}' takes {limit} with start and end",
                f"Set context_length to {max(0, limit - longest)} or less.",
            )
        self.tree = text_tree(tokens, context=length)

    @property
    def tokens(self) -> int:
        """How many tokens get a gradient."""
        return len(self.tree.tokens)

    def classifier(self, vectors: torch.Tensor, *, checkpoint: bool = False) -> torch.Tensor:
        """Unit vectors (C, d) under context vectors (M, w)."""
        with self.backbone.autocast():
            raw = encode_tree(
                self.backbone.model, self.tree, context=vectors, checkpoint=checkpoint, lean=True
            )
        return F.normalize(raw.float(), dim=-1)


def random_context(context: Context, length: int, generator: torch.Generator) -> torch.Tensor:
    """Context vectors (M, w) to start from: normal noise."""
    _require_tower(context)
    width = tower_shape(context.backbone.model).width
    return STD * torch.randn(length, width, generator=generator).to(context.device)


def context_of_words(context: Context, words: str) -> torch.Tensor:
    """Context vectors (M, w) to start from: the embeddings of some words."""
    tokens = _tokens(context, [words])[0]
    inner = tokens[1 : int(tokens.argmax())]
    model: Any = context.backbone.model
    embedding = getattr(model, "text", model).token_embedding
    return embedding(inner).detach().clone()


def _tokens(context: Context, texts: list[str]) -> torch.Tensor:
    _require_tower(context)
    assert context.backbone.tokenizer is not None
    return context.backbone.tokenizer(texts).to(context.device)


def _require_tower(context: Context) -> None:
    """A table of embedded texts will not do: gradients have to pass through the tower."""
    if context.backbone.tokenizer is None:
        raise RequestError(
            f"learned context needs a text tower, backbone '{context.backbone.name}' has none",
            "Choose another with --backbone.",
        )
