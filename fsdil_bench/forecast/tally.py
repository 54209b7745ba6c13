"""What a rehearsed method sends through the towers, counted block by block.

Every block of a transformer calls its MLP once, whoever runs the block: open_clip, the adapters of
this package or code of a method's own. So a hook on each MLP sees every pass: how many tokens it
has, whether gradients will flow back, and whether they reach the weights.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

Tower = Literal["image", "text"]
#: What happens in the protocol, and while or after which domain.
Phase = tuple[str, int]


@dataclass(frozen=True)
class Work:
    """An amount of work. Image passes are whole passes of one image, text is counted in tokens.

    `frozen` passes are those of the frozen backbone, which always computes in fp32; `forward` are
    all others. `backward` is for gradients of activations, `weights` for those of weights.
    `calls` are blocks that were called, forward and backward, `own` are seconds of one processor
    that the rehearsal took: everything but the arithmetic of the towers.
    """

    image_frozen: float = 0.0
    image_forward: float = 0.0
    image_backward: float = 0.0
    image_weights: float = 0.0
    text_frozen: float = 0.0
    text_forward: float = 0.0
    text_backward: float = 0.0
    text_weights: float = 0.0
    calls: float = 0.0
    plain_views: float = 0.0
    augmented_views: float = 0.0
    own: float = 0.0

    def __add__(self, other: Work) -> Work:
        return self.combined(other, 1.0, 1.0)

    def times(self, factor: float) -> Work:
        """So many times the work."""
        return self.combined(self, factor, 0.0)

    def combined(self, other: Work, here: float, there: float) -> Work:
        """A weighted sum with other work."""
        return Work(*(here * a + there * b for a, b in zip(self, other, strict=True)))

    def __iter__(self) -> Iterator[float]:
        return iter(dataclasses.astuple(self))


@dataclass
class Peak:
    """The most that a single step keeps for its backward pass, in images and tokens.

    `images` and `tokens` with frozen weights, the others with weights that are trained.
    """

    images: float = 0.0
    tokens: float = 0.0
    trained_images: float = 0.0
    trained_tokens: float = 0.0


@dataclass
class Tally:
    """The counters of one rehearsal.

    `image_tokens` and `stand_in_tokens` are the tokens of an image in the tower that is meant and
    in the one that stands for it; `blocks` are the blocks of each tower.
    """

    image_tokens: int
    stand_in_tokens: int
    blocks: dict[Tower, int]
    phase: Phase = ("learn", 0)
    frozen: bool = False
    largest_batch: dict[Phase, int] = field(default_factory=lambda: defaultdict(int))
    features: set[tuple[str, int]] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    text_tokens: int = 0
    peak: Peak = field(default_factory=Peak)
    _counts: dict[Phase, dict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    _live: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _since: float = field(default_factory=time.process_time)

    def work(self) -> dict[Phase, Work]:
        """What was counted, phase by phase."""
        self.begin(*self.phase)
        return {phase: Work(**counts) for phase, counts in self._counts.items()}

    def begin(self, purpose: str, t: int) -> None:
        """What comes next belongs to this phase."""
        now = time.process_time()
        self.add("own", now - self._since)
        self._since = now
        self.phase = (purpose, t)

    def add(self, name: str, amount: float) -> None:
        """Add to a counter of the present phase."""
        self._counts[self.phase][name] += amount

    def new_step(self, images: int, *, augmented: bool) -> None:
        """A batch of views is handed out: what earlier steps kept is gone."""
        self.largest_batch[self.phase] = max(self.largest_batch[self.phase], images)
        self.add("augmented_views" if augmented else "plain_views", images)
        self._live.clear()

    def embed_texts(self, texts: list[str], length: int) -> None:
        """Texts are embedded for the cache that all runs share."""
        self.texts.update(texts)
        self.text_tokens += length * len(texts)

    def texts_digest(self) -> str:
        """A hash of all texts that were embedded."""
        return hashlib.sha256("\n".join(sorted(self.texts)).encode()).hexdigest()

    @contextmanager
    def in_frozen_backbone(self) -> Iterator[None]:
        """Passes are those of the frozen backbone."""
        before, self.frozen = self.frozen, True
        try:
            yield
        finally:
            self.frozen = before

    def watch(self, tower: Tower, blocks: Any) -> None:
        """Count the passes of these blocks, and of all copies that are made of them."""
        for block in blocks:
            block.mlp.register_forward_hook(self._hook(tower))

    def _hook(self, tower: Tower) -> Callable[..., None]:
        """A plain function: copies of a tower share it, and with it these counters."""

        def seen(module: torch.nn.Module, given: tuple[Any, ...], output: torch.Tensor) -> None:
            amount = self._amount(tower, given[0])
            self.add(f"{tower}_{'frozen' if self.frozen else 'forward'}", amount)
            self.add("calls", 1)
            if not (torch.is_grad_enabled() and output.requires_grad):
                return
            trained = any(weight.requires_grad for weight in module.parameters())
            kind = f"{'trained_' if trained else ''}{'images' if tower == 'image' else 'tokens'}"
            self._live[kind] += amount
            setattr(self.peak, kind, max(getattr(self.peak, kind), self._live[kind]))

            def back(gradient: torch.Tensor) -> None:
                del gradient
                self.add(f"{tower}_backward", amount)
                self.add("calls", 2 if trained else 1)
                if trained:
                    self.add(f"{tower}_weights", amount)
                self._live[kind] -= amount

            output.register_hook(back)

        return seen

    def _amount(self, tower: Tower, tokens: torch.Tensor) -> float:
        """The part of a pass (or the tokens) that these tokens in one block are."""
        rows = tokens.numel() // tokens.shape[-1]
        if tower == "text":
            return rows / self.blocks[tower]
        length = tokens.shape[-2]
        real = rows / length * (length - self.stand_in_tokens + self.image_tokens)
        return real / self.image_tokens / self.blocks[tower]
