"""What a run costs: its work, then floating-point operations, memory and seconds on some hardware.

What all runs share through the cache is kept apart: frozen features of images, embeddings of texts,
and with `reuse_base` the base domain. Whoever adds up many runs counts these once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .hardware import Speed
from .lines import Rehearsals, StreamSizes, whole_stream
from .pass_cost import PassCost
from .tally import Work

#: Bytes of decoded pictures that a run keeps in memory (`runs.picture_memory`).
_KEPT_PICTURES = 1 << 30
#: What a training step keeps in bf16, relative to fp32: norms and sums stay in fp32.
_HALF = 0.6
#: Copies of trained weights while they are trained: gradients, and two of AdamW.
_TRAINING_COPIES = 3


@dataclass(frozen=True)
class RunCost:
    """The work of one run, wherever it runs.

    `learn` and `test` have an entry for every domain. `features` are the images whose frozen
    features it needs, by part and domain, `text_tokens` the tokens of texts that it needs embedded,
    and `texts` says which texts these are. `side` is that of pictures kept for augmentation, `view`
    that of the tower's images.
    """

    method: str
    scenario: str
    backbone: str
    cost: PassCost
    sizes: StreamSizes
    learn: tuple[Work, ...]
    test: tuple[Work, ...]
    features: Mapping[tuple[str, int], int]
    text_tokens: int
    texts: str
    kept: tuple[float, float, float, float]
    towers: int
    side: int
    view: int
    published_sizes: bool = False

    @property
    def work(self) -> Work:
        """All that is not shared through the cache."""
        return sum((*self.learn, *self.test), Work())

    @property
    def images(self) -> int:
        """All different images of the stream."""
        return sum(self.sizes.train) + sum(self.sizes.tests) + self.sizes.unseen

    @property
    def shared(self) -> Work:
        """What the cache keeps for other runs."""
        images = float(sum(self.features.values()))
        return Work(image_frozen=images, text_frozen=float(self.text_tokens))

    def flops(self, work: Work) -> float:
        """Floating-point operations of the towers for some of the work."""
        image, text = self.cost.image, self.cost.text
        total = (work.image_frozen + work.image_forward) * image.forward
        total += work.image_backward * image.backward + work.image_weights * image.weight_backward
        if text is not None:
            total += (work.text_frozen + work.text_forward) * text.forward
            total += work.text_backward * text.backward + work.text_weights * text.weight_backward
        return total

    def memory(self, speed: Speed) -> float:
        """The most bytes that are held at a time: weights and the largest step; in RAM also the
        process itself and decoded pictures."""
        image, text = self.cost.image, self.cost.text
        images, tokens, trained_images, trained_tokens = self.kept
        weights = image.weight_bytes + (text.weight_bytes if text else 0)
        # A trained tower is a copy, and the state is copied once more after learning.
        weights += image.weight_bytes * self.towers
        if trained_images:
            weights += image.weight_bytes * _TRAINING_COPIES
        step = images * image.kept + trained_images * image.kept_training
        if text is not None:
            step += tokens * text.kept + trained_tokens * text.kept_training
        if speed.precision == "bf16":
            step *= _HALF
        inference = speed.batch_size * image.live
        in_ram = min(_KEPT_PICTURES, self.images * 3 * self.view**2) if speed.baseline else 0.0
        return speed.baseline + in_ram + weights + max(step, inference)

    def seconds(self, speed: Speed) -> dict[str, float]:
        """Seconds by what they are for: shared features and texts, learning, testing."""
        found = {
            "features": self.feature_seconds(speed, sum(self.features.values())),
            "texts": speed.towers(Work(text_frozen=float(self.text_tokens)), self.cost),
        }
        learn = [self._learn_seconds(t, work, speed) for t, work in enumerate(self.learn)]
        found["learn base"] = learn[0]
        found["learn later"] = sum(learn[1:])
        found["test"] = sum(self._test_seconds(t, work, speed) for t, work in enumerate(self.test))
        return found

    def base_seconds(self, speed: Speed) -> float:
        """Seconds of the base domain, which runs of other shots can take over."""
        return self._learn_seconds(0, self.learn[0], speed) + self._test_seconds(
            0, self.test[0], speed
        )

    def feature_seconds(self, speed: Speed, images: float) -> float:
        """Seconds to decode and encode so many images for the cache."""
        towers = speed.towers(Work(image_frozen=images), self.cost)
        return speed.together(towers, images * (speed.decode + speed.plain))

    def _learn_seconds(self, t: int, work: Work, speed: Speed) -> float:
        there = self.sizes.train[t]
        again = self._missing(there, self.side)
        views = work.plain_views + work.augmented_views
        decoded = min(views, there) + max(0.0, views - there) * again
        images = decoded * speed.decode
        images += work.plain_views * speed.plain + work.augmented_views * speed.augmented
        return speed.together(speed.towers(work, self.cost), images)

    def _test_seconds(self, t: int, work: Work, speed: Speed) -> float:
        """Views of domains that were tested before are in memory, as far as there is room."""
        seen = sum(self.sizes.tests[: t + 1])
        new = self.sizes.tests[t] / seen
        again = self._missing(sum(self.sizes.tests), self.view)
        made = work.plain_views * (new + (1 - new) * again)
        images = made * (speed.decode + speed.plain)
        return speed.together(speed.towers(work, self.cost), images)

    def _missing(self, images: int, side: int) -> float:
        """The part of so many square pictures that does not fit into memory."""
        return max(0.0, 1 - _KEPT_PICTURES / max(1, images * 3 * side**2))

    def to_dict(self, speed: Speed) -> dict[str, Any]:
        """Plain JSON types."""
        everything = self.work + self.shared
        seconds = self.seconds(speed)
        shared = sum(self.features.values())
        counts = {
            "flops": self.flops(everything),
            "flops_shared": self.flops(self.shared),
            "images_forward": everything.image_frozen + everything.image_forward,
            "images_backward": everything.image_backward,
            "images_shared": shared,
            "text_tokens_forward": everything.text_frozen + everything.text_forward,
            "text_tokens_backward": everything.text_backward,
            "views": everything.plain_views + everything.augmented_views + shared,
            "peak_memory_bytes": self.memory(speed),
        }
        return {
            "method": self.method,
            "scenario": self.scenario,
            "backbone": self.backbone,
            "hardware": speed.name,
            "precision": speed.precision,
            "published_sizes": self.published_sizes,
            **{name: round(count) for name, count in counts.items()},
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "seconds_total": round(sum(seconds.values()), 3),
        }


def run_cost(
    found: Rehearsals, sizes: StreamSizes, *, cost: PassCost, side: int, view: int, **names: Any
) -> RunCost:
    """The cost of a run with these sizes, by rehearsals of its method."""
    learn, test = whole_stream(found, sizes)
    large = found.large
    peak = large.peak
    return RunCost(
        cost=cost,
        sizes=sizes,
        learn=tuple(learn),
        test=tuple(test),
        features=_features(large.features, sizes),
        text_tokens=large.text_tokens,
        texts=large.texts,
        kept=(peak.images, peak.tokens, peak.trained_images, peak.trained_tokens),
        towers=large.towers,
        side=side,
        view=view,
        **names,
    )


def _features(asked: frozenset[tuple[str, int]], sizes: StreamSizes) -> dict[tuple[str, int], int]:
    """How many images features are needed of; what later domains ask for, all of them do."""
    needed: dict[tuple[str, int], int] = {}
    for t, (train, tests) in enumerate(zip(sizes.train, sizes.tests, strict=True)):
        if ("train", min(t, 1)) in asked:
            needed["train", t] = train
        if ("test", 0) in asked:
            needed["test", t] = tests
    if ("test", 0) in asked and sizes.unseen:
        needed["unseen", 0] = sizes.unseen
    return needed
