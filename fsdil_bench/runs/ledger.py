"""The ledger of a domain: which training images the views handed out, and how often.

It is kept by the harness, not by the method, and it is checked when a domain is over: a run on K
shots in which a later domain showed more than K images of a class is no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fsdil_bench.errors import DataError


class Ledger:
    """What was handed out while one domain was learned, by domain and position of the image."""

    def __init__(self) -> None:
        self._labels: dict[int, np.ndarray] = {}
        self._times: dict[int, np.ndarray] = {}

    def note(
        self, domain: int, labels: np.ndarray, positions: Sequence[int] | np.ndarray | None = None
    ) -> None:
        """Images at `positions` (None: all) of a domain with these labels were handed out."""
        times = self._times.setdefault(domain, np.zeros(len(labels), np.int64))
        self._labels[domain] = labels
        if positions is None:
            times += 1
        else:
            np.add.at(times, np.asarray(positions, np.int64), 1)

    def check(self, shots: int | None, class_names: Sequence[str]) -> None:
        """Refuse more than `shots` distinct images per class in any domain after the base."""
        for domain, labels in self._labels.items():
            counts = np.bincount(labels[self._times[domain] > 0], minlength=len(class_names))
            if domain and shots is not None and counts.max() > shots:
                c = int(counts.argmax())
                raise DataError(
                    f"domain {domain + 1} handed out {counts[c]} different images of class "
                    f"'{class_names[c]}' in a run on {shots} shot{'s' if shots > 1 else ''}",
                    "The stream holds more than was drawn: the scenario or the harness is at "
                    "fault, and the run does not count.",
                )

    def summary(self, domain: int, images: int) -> dict[str, Any]:
        """For the record: of the `images` of the domain so many distinct ones were handed out, at
        most `per_class` of a class, so many times in all; likewise for `earlier` domains."""
        empty = np.zeros(0, np.int64)
        own, labels = self._times.get(domain, empty), self._labels.get(domain, empty)
        served = own > 0
        found: dict[str, Any] = {
            "images": images,
            "distinct": int(served.sum()),
            "per_class": int(np.bincount(labels[served], minlength=1).max()),
            "times": int(own.sum()),
        }
        earlier = [times for i, times in self._times.items() if i != domain]
        if earlier:
            found["earlier"] = {
                "distinct": int(sum((times > 0).sum() for times in earlier)),
                "times": int(sum(times.sum() for times in earlier)),
            }
        return found
