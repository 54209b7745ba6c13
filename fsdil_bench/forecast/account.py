"""The costs of many runs added up: what the cache shares between them is paid by the first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .forecaster import RunForecast
from .hardware import Speed
from .tally import Work


@dataclass(frozen=True)
class Charge:
    """What one run costs after the runs before it: seconds, operations, images, bytes."""

    seconds: float
    flops: float
    images: float
    images_trained: float
    memory: float


@dataclass
class Account:
    """What is paid for already: features of images, embeddings of texts, base domains."""

    _images: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _texts: set[tuple[str, str]] = field(default_factory=set)
    _bases: set[str] = field(default_factory=set)

    def charge(self, run: RunForecast) -> Charge:
        """What a run costs, less what earlier ones have left in the cache."""
        cost, speed = run.cost, run.speed
        images = self._new_features(run)
        tokens = 0 if (cost.backbone, cost.texts) in self._texts else cost.text_tokens
        self._texts.add((cost.backbone, cost.texts))
        shared = Work(image_frozen=float(images), text_frozen=float(tokens))
        own, seconds = cost.work, _own_seconds(run, speed)
        if self._has_base(run):
            base = cost.learn[0] + cost.test[0]
            own = own.combined(base, 1.0, -1.0)
            seconds -= cost.base_seconds(speed)
        everything = own + shared
        return Charge(
            seconds=seconds
            + cost.feature_seconds(speed, images)
            + speed.towers(Work(text_frozen=float(tokens)), cost.cost),
            flops=cost.flops(everything),
            images=everything.image_frozen + everything.image_forward,
            images_trained=everything.image_backward,
            memory=cost.memory(speed),
        )

    def _new_features(self, run: RunForecast) -> int:
        """Images whose features no earlier run has computed.

        Of a later domain every seed draws its own images, and more shots add to fewer.
        """
        request, new = run.request, 0
        group = (
            run.cost.backbone, request.scenario.dataset, request.scenario.variant,
            request.transform, request.data,
        )  # fmt: skip
        for (part, t), images in run.cost.features.items():
            drawn = request.seed if part == "train" and t else -1
            key = (*group, part, run.domains[t], drawn)
            new += max(0, images - self._images.get(key, 0))
            self._images[key] = max(images, self._images.get(key, 0))
        return new

    def _has_base(self, run: RunForecast) -> bool:
        """Whether an earlier run has learned the base domain, and shares it."""
        request = run.request
        if not request.reuse_base:
            return False
        scenario = replace(request.scenario, shots=1)
        asked = replace(request, scenario=scenario, order=run.domains[:1], base="")
        key = str(asked.to_dict())
        known = key in self._bases
        self._bases.add(key)
        return known


def _own_seconds(run: RunForecast, speed: Speed) -> float:
    parts = run.cost.seconds(speed)
    return sum(value for name, value in parts.items() if name not in ("features", "texts"))
