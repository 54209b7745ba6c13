"""What one pass through a tower of ViT-B/16 costs, and what a training step keeps.

`Costs` runs the method's own code on tensors without values and counts FLOPs and saved tensors.
`Least` is the limit, as formulas: with n tokens of width w, heads of width d and L blocks, a block
takes 24 n w^2 for its linear maps and 4 n^2 w for attention, the last one only what leads to the
token that is read. Backwards, each product is needed once for the gradient of its input, and the
coalescent projections have a gradient of their own. Nothing before the first of them has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

from fsdil_bench import Backbone, Context, ImageSpec
from fsdil_bench.adapters import (
    TextTree,
    encode_image,
    encode_rest,
    encode_tree,
    fold,
    image_tokens,
)

MODEL = "ViT-B-16-quickgelu"


class Costs:
    """A CVLC of the shapes of ViT-B/16 with the preset and the names of a data set."""

    def __init__(self, dataset: str) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        self.dataset, self.mode = dataset, FakeTensorMode(allow_non_fake_inputs=True)
        self.ours = _method(dataset, self.mode, plain=False)

    @cached_property
    def plain(self) -> Any:
        """The plain formulation of the same."""
        return _method(self.dataset, self.mode, plain=True)

    @cache  # noqa: B019 (there are three of these)
    def of(self, kind: str) -> int:
        """FLOPs of a pass of this kind: of an image, or of all texts (of one text in `plain`)."""
        from torch.utils.flop_counter import FlopCounterMode

        from . import plain_cvlc

        method = self.ours
        visual, model = method.visual, method.context.backbone.model
        adapters, words = method.weights.vision_adapters(0), method.weights.text_adapters(0)
        depth = method._branching
        with self.mode, _no_fast_path():
            image = torch.empty(1, 3, 224, 224)
            tokens = torch.empty(1, 197, 768)
            text = torch.zeros(1, 77, dtype=torch.long)
            folded = fold(visual, adapters)

            def names() -> Tensor:
                return encode_tree(model, method.sentences.names.tree, words, lean=True)

            def synonyms() -> Tensor:
                tree = method.sentences.synonyms.tree
                return encode_tree(model, tree, fold(model, words), lean=True)

            passes: dict[str, Callable[[], Tensor]] = {
                "trained": lambda: encode_image(visual, image, adapters, lean=True),
                "image": lambda: encode_image(visual, image, folded, lean=True),
                "first": lambda: image_tokens(visual, image, folded, depth=depth).tokens,
                "rest": lambda: encode_rest(visual, tokens, folded[depth:]),
                "whole": lambda: visual(image),
                "names": names,
                "synonyms": synonyms,
                "plain image": lambda: plain_cvlc.encode_images(visual, image, adapters),
                "plain text": lambda: plain_cvlc.encode_texts(model, text, words),
            }
            trained = kind.endswith("trained")
            run = passes[kind if kind in passes else kind.removesuffix(", trained")]
            with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(trained):
                result = run()
                if trained:
                    result.sum().backward()
            return int(counter.get_total_flops())

    def kept(self, kind: str) -> int:
        """Bytes that a base training step saves for its backward pass: "ours", "plain" or with
        "checkpoints"."""
        method = self.plain if kind == "plain" else self.ours
        checkpoint = kind == "checkpoints"
        with self.mode:
            images = torch.empty(method.config.batch_size, 3, 224, 224)
            labels = torch.zeros(len(images), dtype=torch.long)

            def step() -> Tensor:
                weights = method.weights
                z = method._embed_training(images, 0, checkpoint)
                prototypes = method._fused(0, weights.classifier, method._text(0, checkpoint))
                from fsdil_methods.cvlc.visual_prototypes import logits

                return F.cross_entropy(logits(z, prototypes, weights.log_scale), labels)

            model = method.context.backbone.model
            return saved_bytes(step, [*model.parameters(), *method.weights.parameters()])


def saved_bytes(run: Callable[[], Tensor], weights: Sequence[Tensor]) -> int:
    """What autograd holds after `run`, each storage once, without the weights."""
    held: dict[int, Any] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held[storage._cdata] = storage  # kept, so that no other gets its address
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    own = {weight.untyped_storage()._cdata for weight in weights}
    total = sum(storage.nbytes() for key, storage in held.items() if key not in own)
    del result
    return total


def _method(dataset: str, mode: Any, *, plain: bool) -> Any:
    """The method before it has learned anything, its base domain added."""
    from fsdil_methods.cvlc import sentences
    from fsdil_methods.cvlc.config import PRESETS, Config
    from fsdil_methods.cvlc.method import CVLC
    from fsdil_scenarios.names import class_folders, class_texts
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    from .plain_cvlc import PlainCVLC

    names, synonyms = class_texts(dataset, class_folders(dataset))
    tree = sentences.text_tree

    def real(tokens: Tensor, **more: Any) -> TextTree:
        with unset_fake_temporarily():
            return tree(tokens, **more)

    context = Context(
        Config(**PRESETS[dataset]), _backbone(), tuple(names), tuple(map(tuple, synonyms)), 0
    )
    # Nothing has a place here, and tensors without values cannot be moved.
    stay = mock.patch.object(torch.nn.Module, "to", lambda module, *_: module)
    with mode, stay, mock.patch.object(sentences, "text_tree", real):
        method = (PlainCVLC if plain else CVLC)(context)
        method.weights.add_domain()
    return method


def _backbone() -> Backbone:
    import open_clip
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    words = open_clip.get_tokenizer(MODEL)

    def tokenize(texts: list[str]) -> Tensor:
        with unset_fake_temporarily():
            return words(texts)

    def build() -> torch.nn.Module:
        return open_clip.model.CLIP(**open_clip.get_model_config(MODEL))

    return Backbone(
        MODEL, build=build, weights_hash="0", image=ImageSpec(224), embed_dim=512,
        tokenizer=tokenize,
    )  # fmt: skip


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Attention of torch without gradients is one operation that no one counts."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class Least:
    """FLOPs that nothing can spare, for the names of a data set."""

    def __init__(self, dataset: str) -> None:
        self.names, self.synonyms = _trees(dataset)

    def of(self, kind: str) -> int:
        """FLOPs of a pass of this kind; kinds as in `Costs`."""
        image = Tower(197, 197 * 197, 1, 197, width=768)
        begin, end = 2 * 196 * 768 * 3 * 16**2, 2 * 768 * 512
        text = Tower(*self.names, width=512)
        return {
            "trained": lambda: begin + image.forward(added=True) + image.backward() + 2 * end,
            "first": lambda: begin + 8 * image.block(),
            "rest": lambda: 3 * image.block() + image.last() + end,
            "whole": lambda: begin + image.forward() + end,
            "names": lambda: text.forward() + text.end(),
            "names, trained": lambda: text.forward(added=True) + text.backward() + 2 * text.end(),
            "synonyms": lambda: self._synonyms(),
        }[kind]()

    def _synonyms(self) -> int:
        tower = Tower(*self.synonyms, width=512)
        return tower.forward() + tower.end()


class Tower:
    """Twelve blocks on `tokens`, which look at so many `pairs`; read at some that look at some."""

    def __init__(
        self, tokens: int, pairs: int, read: int, read_pairs: int, *, width: int, blocks: int = 12
    ) -> None:
        self.tokens, self.pairs, self.read, self.read_pairs = tokens, pairs, read, read_pairs
        self.width, self.blocks = width, blocks

    def block(self) -> int:
        return 24 * self.tokens * self.width**2 + 4 * self.pairs * self.width

    def last(self) -> int:
        """Keys and values of all tokens, everything else where it is read."""
        w = self.width
        return 4 * self.tokens * w**2 + 20 * self.read * w**2 + 4 * self.read_pairs * w

    def added(self, read: int) -> int:
        """C1 on queries and C2 on values, in heads of width 64."""
        return 2 * 64 * self.width * (read + self.tokens)

    def forward(self, *, added: bool = False) -> int:
        inner = self.blocks - 1
        more = inner * self.added(self.tokens) + self.added(self.read) if added else 0
        return inner * self.block() + self.last() + more

    def backward(self) -> int:
        """Of attention, both products have two factors. Before the first C1 nothing is needed."""
        w = self.width
        factors = 4 * w * ((self.blocks - 1) * self.pairs + self.read_pairs)
        first = 6 * self.tokens * w**2 + 2 * w * self.pairs
        matrices = (self.blocks - 1) * self.added(self.tokens) + self.added(self.read)
        first += self.added(self.tokens)
        return self.forward(added=True) + factors + matrices - first

    def end(self) -> int:
        return 2 * self.read * self.width * 512


def _trees(dataset: str) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """Distinct beginnings of the texts of names, and of those that synonyms add: tokens, pairs,
    and the same of distinct ends."""
    import open_clip
    from fsdil_methods.cvlc.config import PRESETS, Config
    from fsdil_scenarios.names import class_folders, class_texts

    config = Config(**PRESETS[dataset])
    names, synonyms = class_texts(dataset, class_folders(dataset))
    words = [word for each in synonyms for word in each] if config.synonyms else []
    known: set[tuple[int, ...]] = set()
    found = []
    for group in (list(names), words):
        texts = [template.replace("{}", word) for word in group for template in config.templates]
        paths = open_clip.get_tokenizer(MODEL)(texts).tolist() if texts else []
        ends = {tuple(path[: path.index(max(path)) + 1]) for path in paths} - known
        tokens = {end[:i] for end in ends for i in range(1, len(end) + 1)} - known
        known |= tokens
        found.append((len(tokens), sum(map(len, tokens)), len(ends), sum(map(len, ends))))
    return found[0], found[1]
