"""The labels of test images, copied before a method is built.

A method that finds the harness's arrays in memory could write its predictions into them. Scores are
computed with copies that cannot be written, and a difference ends the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fsdil_bench.data.scenario import Samples
from fsdil_bench.errors import PluginError


class LabelCopies:
    """Copies of the labels of named test sets."""

    def __init__(self, tests: Iterable[tuple[str, Samples]]) -> None:
        self._kept = tuple((name, test, test.labels.tobytes()) for name, test in tests)

    def of(self, tests: Sequence[Samples]) -> np.ndarray:
        """The labels of some of the test sets, if all are as they were."""
        for name, test, labels in self._kept:
            if test.labels.tobytes() != labels:
                raise PluginError(
                    f"the test labels of '{name}' have changed while the method was at work",
                    "The result does not count. A method may not write into the harness's arrays.",
                )
        known = {id(test): labels for _, test, labels in self._kept}
        return np.concatenate([np.frombuffer(known[id(test)], np.int64) for test in tests])
