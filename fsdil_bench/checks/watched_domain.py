"""A training view that records what a method reads from it.

The record holds copies of the data, to search for them later, and weak references to the tensors
themselves, to see which of them outlive their domain. (`runs.ledger` counts, in every run.)
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from fsdil_bench.runs.views import TrainBatch, TrainDomain

_MOST_COPIES = 1000  # views kept for the search: the first ones of a domain say enough


class ServedData:
    """All that the domains of one run gave to a method."""

    def __init__(self) -> None:
        self.images: list[torch.Tensor] = []
        self.features: list[torch.Tensor] = []
        self.read: set[int] = set()  # domains of which anything was read
        self.peeked: set[str] = set()  # private names that a method looked at
        self.labels: dict[int, Counter[int]] = {}  # images of each class that a domain has
        self.outside: set[int] = set()  # positions served that the domain does not have
        self._served: list[tuple[str, weakref.ref[torch.Tensor]]] = []

    def note(self, kind: str, domain: int, tensor: torch.Tensor) -> torch.Tensor:
        """Record that `tensor` was given to the method, and return it."""
        copies = self.features if kind == "features" else self.images
        if sum(map(len, copies)) < _MOST_COPIES * (domain + 1):
            copies.append(tensor.detach().cpu().clone())
        self._served.append((f"{kind} of domain {domain + 1}", weakref.ref(tensor)))
        return tensor

    def alive(self) -> Counter[str]:
        """What was given to the method and still exists, with the number of tensors."""
        return Counter(what for what, served in self._served if served() is not None)


class WatchedDomain(TrainDomain):
    """A training view with a record."""

    def __init__(self, *arguments: Any, seen: ServedData, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._seen = seen
        seen.labels[self.index] = Counter(self._samples.labels.tolist())

    def __getattribute__(self, name: str) -> Any:
        private = name == "__dict__" or (name.startswith("_") and not name.startswith("__"))
        if private and not sys._getframe(1).f_globals["__name__"].startswith("fsdil_bench."):
            object.__getattribute__(self, "_seen").peeked.add(name)
        return super().__getattribute__(name)

    @property
    def labels(self) -> torch.Tensor:
        """As in `TrainDomain`."""
        self._seen.read.add(self.index)
        return super().labels

    def features(self) -> torch.Tensor:
        """As in `TrainDomain`."""
        self._seen.read.add(self.index)
        return self._seen.note("features", self.index, super().features())

    def images(self) -> torch.Tensor:
        """As in `TrainDomain`."""
        self._seen.read.add(self.index)
        return self._seen.note("images", self.index, super().images())

    def take(self, *arguments: Any, **options: Any) -> TrainBatch:
        """As in `TrainDomain`."""
        self._seen.read.add(self.index)
        return self._note_batch(super().take(*arguments, **options))

    def batches(self, *arguments: Any, **options: Any) -> Iterator[TrainBatch]:
        """As in `TrainDomain`."""
        self._seen.read.add(self.index)
        for batch in super().batches(*arguments, **options):
            yield self._note_batch(batch)

    def _note_batch(self, batch: TrainBatch) -> TrainBatch:
        self._seen.note("images", self.index, batch.images)
        self._seen.outside |= set(batch.positions.tolist()) - set(range(len(self)))
        return batch
