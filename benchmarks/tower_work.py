"""How much work a run gives the towers, counted: nothing is timed and next to nothing computed.

A whole run of harness and method goes through a data set of made-up pictures with made-up towers,
which note what they are given. What one pass costs with the shapes of ViT-B/16 is counted, too
(`tower_costs.py`). The product stands beside two other numbers:

    plain    the same method without savings (`plain_cvlc.py`)
    limit    every block once for every distinct view and distinct weights up to it, every distinct
             beginning of a text once for distinct weights, a backward pass only through what has
             to have a gradient: written down as a formula, not counted

Images and blocks are as many as in the data sets. How well a router recognises the made-up domains,
and so how many images the oracle has to see again, is arbitrary.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from fsdil_bench import Backbone, Context, Domain, ImageSpec, Samples, Stream
from fsdil_bench.adapters import adapter_tensors, towers
from fsdil_bench.adapters.block import TowerTokens
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.progress import Progress
from fsdil_bench.runs.executor import InProcess
from fsdil_bench.runs.ledger import Ledger
from fsdil_bench.runs.loop import Loop
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

BLOCKS, SHARED = 12, 8
SIZE, WIDTH = 8, 16  # of the made-up pictures and towers
BATCH = 256  # what a CUDA device takes by default
PHASES = ("base training", "few-shot training", "views and statistics", "texts", "evaluation")
TEXTS = PHASES[3]


@dataclass(frozen=True)
class Shape:
    """A data set: its preset and names, training images of the base domain, test images."""

    name: str
    classes: int
    base: int
    tests: tuple[int, ...]
    shots: int = 4

    def smaller(self, factor: int) -> Shape:
        """The same with fewer images."""
        tests = tuple(max(self.classes, count // factor) for count in self.tests)
        return Shape(self.name, self.classes, self.base // factor, tests, self.shots)


SHAPES = (
    Shape("core50", 50, 12_000, (3_000,) * 8),
    Shape("cddb-hard", 2, 3_300, (2_000, 800, 2_063, 400, 90)),
    Shape("domainnet", 345, 120_906, (52_041, 21_850, 14_604, 20_916, 51_750, 15_582)),
)


# What a run asks of the towers


@dataclass
class Work:
    """Passes by phase and kind, in rows: of all, and of those that were not known before.

    A row is an image, or a pass over all texts of one kind. `first` and `rest` are the blocks
    before and after the place from where on domains differ.
    """

    passes: Counter[tuple[str, str]] = field(default_factory=Counter)
    least: Counter[tuple[str, str]] = field(default_factory=Counter)
    phase: str = PHASES[-1]
    _seen: set[Any] = field(default_factory=set)

    def images(self, kind: str, rows: torch.Tensor, weights: Sequence[str], trained: bool) -> None:
        """Note a pass; `weights` identify those of the first blocks and of the rest."""
        phase = self.phase
        if trained:
            self.passes[phase, kind] += len(rows)
            self.least[phase, kind] += len(rows)
            return
        if "training" in phase:
            phase = PHASES[2]
        self.passes[phase, kind] += len(rows)
        views = rows.detach().flatten(1).numpy()
        for part in ("first", "rest") if kind == "image" else (kind,):
            known = weights[:1] if part == "first" else weights
            for view in views:
                if view.any():  # zeros are padding
                    self._new((part, *known, view.tobytes()), phase, part)

    def texts(self, kind: str, weights: str, trained: bool) -> None:
        """Note a pass over all texts of one kind."""
        key = (kind, weights)
        if trained:
            self.passes[TEXTS, f"{kind}, trained"] += 1
            self.least[TEXTS, f"{kind}, trained"] += 1
            # With the same weights as before, one of the passes would have been enough.
            self.least[TEXTS, kind] -= hash(key) in self._seen
            self._seen.add(hash(key))
            return
        self.passes[TEXTS, kind] += 1
        self._new(key, TEXTS, kind)

    def _new(self, key: tuple[Any, ...], phase: str, kind: str) -> None:
        mark = hash(key)
        if mark not in self._seen:
            self._seen.add(mark)
            self.least[phase, kind] += 1

    def in_phase(self, phase: str) -> dict[str, int]:
        """Passes of a phase by kind."""
        return {kind: count for (where, kind), count in self.passes.items() if where == phase}

    def least_in_phase(self, phase: str) -> dict[str, int]:
        """Passes of a phase that nothing can spare, by kind."""
        return {kind: count for (where, kind), count in self.least.items() if where == phase}


def count_run(shape: Shape, method: str = "cvlc", *, plain: bool = False, **config: Any) -> Work:
    """The work of a run with the preset of the data set."""
    from fsdil_bench.plugins.registry import load_registry
    from fsdil_bench.runs.job import load_method_class, method_settings

    info = load_registry(third_party=()).method(method)
    settings = method_settings(info, shape.name, config)
    work = Work()
    stream, backbone = _stream(shape), _backbone(work)
    kind = load_method_class(info)
    if plain:
        from . import plain_cvlc

        kind = plain_cvlc.PlainCVLC
    build = partial(kind, Context(settings, backbone, stream.class_names, stream.synonyms, 0))
    executor = InProcess(method, build, 0, backbone.device)
    with tempfile.TemporaryDirectory() as name, _made_up(work):
        folder = Path(name)
        transform = build_transform("core50", backbone.image)
        pictures = Pictures(stream, backbone, transform, folder, Progress(), workers=0)
        loop = Loop(
            method, executor, stream, pictures, 0, info.exemplar_free, RunFolder(folder), Progress()
        )
        learn = executor.learn

        def learn_noted(domain: Any) -> None:
            work.phase = PHASES[1 if domain.index else 0]
            learn(domain)
            work.phase = PHASES[-1]

        executor.learn = learn_noted  # type: ignore[method-assign]
        if plain:
            _run_plain(executor, loop)
        else:
            loop.run()
        pictures.close()
    return work


def _run_plain(executor: InProcess, loop: Loop) -> None:
    executor.restart(None)
    method: Any = executor.method
    pictures, stream = loop.pictures, loop.stream
    views = [
        pictures.transform.normalise(pictures.plain(domain.test), torch.device("cpu"))
        for domain in stream.domains
    ]
    for t in range(len(stream.domains)):
        executor.learn(loop._train_domain(t, Ledger()))
        sizes = torch.tensor([len(part) for part in views[: t + 1]])
        truth = torch.arange(t + 1).repeat_interleave(sizes)
        method.evaluate(torch.cat(views[: t + 1]), truth)


# Made-up towers and pictures


@contextmanager
def _made_up(work: Work) -> Iterator[None]:
    """Let towers note what they are given instead of computing it."""
    from . import plain_cvlc

    plain = {
        "encode_images": partial(_plain_images, work),
        "encode_texts": partial(_plain_texts, work),
    }
    # Made-up weights learn nothing: a rate that drops would soon leave them as they are.
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    with (
        mock.patch.object(towers, "run_blocks", partial(_run_blocks, work)),
        mock.patch.multiple(plain_cvlc, **plain),
        mock.patch.object(plateau, "step"),
    ):
        yield


def _run_blocks(
    work: Work, blocks: Sequence[Any], x: torch.Tensor, adapters: Sequence[Any] = (), **more: Any
) -> TowerTokens:
    """Stands for the blocks: tokens that depend on the weights, so that these are trained."""
    adapters = list(adapters)[: more.get("depth")]
    tensors = _tensors(adapters)
    tree, lean = more.get("tree"), more.get("lean", False)
    trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    # Not the same for all numbers of a token: a norm would take it away again.
    out = x + 1e-3 * sum(tensor.mean() for tensor in tensors) * torch.linspace(-1, 1, WIDTH)
    if blocks[0].place[0] == "text":
        folded = any(each.projections for each in adapters)  # synonyms: they get no gradient
        work.texts("synonyms" if folded else "names", _fingerprint(tensors), trained)
    else:
        kind = {(0, SHARED): "first", (SHARED, BLOCKS): "rest"}.get(_stretch(blocks, more), "image")
        kind = f"{kind}{'' if lean or kind == 'first' else ', all tokens'}"
        parts = [_fingerprint(_tensors(adapters[:SHARED])), _fingerprint(tensors)]
        work.images("trained" if trained else kind, x, parts, trained)
    if not trained:  # tokens tell what weights they have seen, whatever is rounded
        out = out.clone()
        out[..., 0] = int(_fingerprint(tensors)[:6], 16) / 2**24
    if lean:
        out = out[:, tree.ends] if tree is not None else out[:, :1]
    prompts = next((a.tokens.shape[-2] for a in adapters if a.tokens is not None), 0)
    return TowerTokens(out[:, :1].expand(-1, prompts, -1), out)


def _stretch(blocks: Sequence[Any], more: Mapping[str, Any]) -> tuple[int, int]:
    first = blocks[0].place[1]
    return first, more.get("depth") or blocks[-1].place[1] + 1


class _Visual(torch.nn.Module):
    """Stands for an image tower that runs as a whole, frozen or trained."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        me: Any = self
        weights = [me.proj, me.ln_post.bias]
        trained = torch.is_grad_enabled() and me.proj.requires_grad
        work = WORK[-1]
        kind = "whole, trained" if trained else "whole"
        work.images(kind, images, [_fingerprint(weights)], trained)
        return _numbers(images) + 1e-4 * sum(weight.mean() for weight in weights)


WORK: list[Work] = []  # of the run under way; towers are copied, this must not be


def _plain_images(
    work: Work, visual: Any, pixels: torch.Tensor, adapters: list[Any]
) -> torch.Tensor:
    del visual
    tensors, trained = _tensors(adapters), torch.is_grad_enabled()
    kind = "plain image, trained" if trained else "plain image"
    phase = PHASES[2] if "training" in work.phase and not trained else work.phase
    work.passes[phase, kind] += len(pixels)
    return _numbers(pixels) + 1e-4 * sum(tensor.mean() for tensor in tensors)


def _plain_texts(work: Work, model: Any, tokens: torch.Tensor, adapters: list[Any]) -> torch.Tensor:
    del model
    tensors, trained = _tensors(adapters), torch.is_grad_enabled()
    work.passes[TEXTS, "plain text, trained" if trained else "plain text"] += len(tokens)
    spread = torch.linspace(-1, 1, len(tokens) * WIDTH).sin().view(len(tokens), WIDTH)
    return spread + 1e-4 * sum(tensor.mean() for tensor in tensors)


def _backbone(work: Work) -> Backbone:
    from open_clip.model import CLIP

    WORK[:] = [work]

    def build() -> torch.nn.Module:
        vision = {"image_size": SIZE, "patch_size": SIZE, "width": WIDTH, "layers": BLOCKS}
        text = {"context_length": 77, "vocab_size": 64, "width": WIDTH, "heads": 1}
        model = CLIP(WIDTH, vision | {"head_width": WIDTH}, text | {"layers": BLOCKS})
        visual = model.visual
        kind = type("Visual", (type(visual),), {"forward": _Visual.forward})
        visual.__class__ = kind
        with torch.no_grad():
            visual.positional_embedding.zero_()
            visual.class_embedding.zero_()
        for tower, name in ((visual, "image"), (model, "text")):
            for i, block in enumerate(tower.transformer.resblocks):
                block.place = (name, i)
        return model

    backbone = Backbone(
        "counting", build=build, weights_hash="0", image=ImageSpec(SIZE), embed_dim=WIDTH,
        tokenizer=_tokenize,
    )  # fmt: skip
    backbone.place(torch.device("cpu"), "fp32", None, batch_size=BATCH)
    return backbone


def _tokenize(texts: list[str]) -> torch.Tensor:
    """One made-up token per text: a tree of them is no larger than it has to be."""
    tokens = torch.zeros(len(texts), 77, dtype=torch.long)
    tokens[:, 0], tokens[:, 2] = 1, 63
    tokens[:, 1] = torch.tensor([2 + sum(text.encode()) % 60 for text in texts])
    return tokens


def _numbers(images: torch.Tensor) -> torch.Tensor:
    """Colour by colour, the brightness of a few places: enough to recognise the domains."""
    return images.flatten(1)[:, ::12].contiguous()


def _tensors(adapters: Sequence[Any]) -> list[torch.Tensor]:
    folded = [part for each in adapters for part in each.projections or ()]
    return [*adapter_tensors(adapters), *folded]


def _fingerprint(tensors: Sequence[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().numpy())
    return digest.hexdigest()


def _stream(shape: Shape) -> Stream:
    names, synonyms = _names(shape)
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 60, (1024, 2 * SIZE, 2 * SIZE, 3)).astype(np.uint8)

    def picture(sample_id: str) -> np.ndarray:
        """Noise, with a brightness of its own in each domain, and a place that tells it apart."""
        domain, part, number = (int(word) for word in sample_id.split())
        colours = np.array([15 * domain, 150 - 15 * domain, 80], np.uint8)
        made = noise[(7 * number + 31 * domain + part) % len(noise)] + colours
        made[:2, :2] = np.frombuffer(hashlib.blake2b(sample_id.encode(), digest_size=12).digest(),
                                     np.uint8).reshape(2, 2, 3) // 4 + 90  # fmt: skip
        return made

    def samples(domain: int, part: int, count: int) -> Samples:
        labels = np.arange(count) % shape.classes
        ids = tuple(f"{domain} {part} {i}" for i in range(count))
        return Samples(ids, labels, picture, keys=ids)

    domains = [
        Domain(
            f"d{t}",
            samples(t, 0, shape.base if t == 0 else shape.shots * shape.classes),
            samples(t, 1, tests),
        )
        for t, tests in enumerate(shape.tests)
    ]
    return Stream("counted", names, tuple(domains), synonyms, transform="core50")


def _names(shape: Shape) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    from fsdil_scenarios.names import class_folders, class_texts

    names, synonyms = class_texts(shape.name, class_folders(shape.name))
    assert len(names) == shape.classes
    return tuple(names), tuple(tuple(words) for words in synonyms)


# Reports


@dataclass(frozen=True)
class Row:
    """A phase: FLOPs of this implementation, of the plain one, and the least possible."""

    phase: str
    ours: float
    plain: float
    limit: float

    @property
    def ratio(self) -> float:
        """How far from the least possible."""
        return self.ours / self.limit


def rows(shape: Shape, **config: Any) -> list[Row]:
    """CVLC on a data set, phase by phase, and as a whole."""
    from .tower_costs import Costs, Least

    ours, plain = count_run(shape, **config), count_run(shape, plain=True, **config)
    costs, least = Costs(shape.name), Least(shape.name)
    found = [
        Row(
            phase,
            sum(n * costs.of(kind) for kind, n in ours.in_phase(phase).items()),
            sum(n * costs.of(kind) for kind, n in plain.in_phase(phase).items()),
            sum(n * least.of(kind) for kind, n in ours.least_in_phase(phase).items()),
        )
        for phase in PHASES
    ]
    totals = (sum(getattr(row, name) for row in found) for name in ("ours", "plain", "limit"))
    return [*found, Row("total", *totals)]


def report(name: str, found: Sequence[Row]) -> None:
    """As a table of Markdown, in PFLOPs."""
    print(f"| {name} | plain | ours | limit | ours / limit |\n|---|---|---|---|---|")
    for row in found:
        values = " | ".join(f"{v / 1e15:.2f}" for v in (row.plain, row.ours, row.limit))
        print(f"| {row.phase} | {values} | {row.ratio:.2f} |")
    print()


def report_memory(shapes: Sequence[Shape]) -> None:
    """What a training step keeps for its backward pass."""
    from .tower_costs import Costs

    print("| a training step keeps, in GB | plain | ours | with checkpoints |\n|---|---|---|---|")
    for shape in shapes:
        costs = Costs(shape.name)
        kept = [costs.kept("plain"), costs.kept("ours"), costs.kept("checkpoints")]
        print(f"| {shape.name} | " + " | ".join(f"{each / 1e9:.1f}" for each in kept) + " |")
    print()


_STAYS = "weights stay; a test takes over no predictions, or methods could hide what they forget"

#: Methods that run towers, and why some of them encode a view again under the same weights.
OTHERS = {
    "cvlc-lora": "", "cvlc-prompt": "", "cvlc-all-specific": _STAYS, "finetune": "",
    "base-only": _STAYS, "joint": "", "lwf": "", "ewc": "", "wise-ft": "", "wise-ft-streaming": "",
    "inflora": "", "coop": "", "coop-domains": "", "s-prompts": _STAYS, "cp-prompt": _STAYS,
    "l2p": "", "dualprompt": "", "coda-prompt": "",
}  # fmt: skip


#: What does not fit into towers of sixteen dimensions.
_FEWER: dict[str, dict[str, Any]] = {"coda-prompt": {"components": 1}}


def report_others(shape: Shape) -> None:
    """Image passes of other methods: all, and those that differ in view or weights."""
    print("| method | trained | other passes | distinct | ratio | why |\n|---|---|---|---|---|---|")
    for name, why in OTHERS.items():
        trained, passes, distinct = image_passes(count_run(shape, name, **_FEWER.get(name, {})))
        ratio = passes / max(1, distinct)
        print(f"| {name} | {trained:,} | {passes:,} | {distinct:,} | {ratio:.2f} | {why} |")
    print()


def image_passes(work: Work) -> tuple[int, int, int]:
    """Images through a tower in training, without, and the least of the latter.

    Half a pass through the first blocks and half a pass through the rest is one.
    """
    share = {"first": SHARED / BLOCKS, "rest": 1 - SHARED / BLOCKS}

    def total(counts: Mapping[tuple[str, str], int], *, trained: bool) -> int:
        return round(
            sum(
                count * share.get(kind.removesuffix(", all tokens"), 1)
                for (phase, kind), count in counts.items()
                if phase != TEXTS and ("trained" in kind) == trained
            )
        )

    return (
        total(work.passes, trained=True),
        total(work.passes, trained=False),
        total(work.least, trained=False),
    )


def main() -> None:
    for shape in SHAPES:
        found = rows(shape)
        report(shape.name, found)
        assert all(row.ratio <= 1.15 for row in found)
    report_memory(SHAPES)
    report_others(SHAPES[0].smaller(10))


if __name__ == "__main__":
    main()
