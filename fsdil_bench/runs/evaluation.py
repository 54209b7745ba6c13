"""Testing a method after a domain: the mixture of all test images, and what follows from it.

The method predicts the test images of domains 0..t in one random mixture, without labels, domain
ids or order. From the predictions follow the row A[t, 0..t], the routing accuracy and the oracle
row. Test sets that belong to no domain are predicted afterwards, mixed among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.plugins.method import State
from fsdil_bench.progress import Progress
from fsdil_bench.records.metrics import accuracy_row
from fsdil_bench.seeds import numpy_generator

from .executor import Call, Executor, InProcess
from .label_copies import LabelCopies
from .pictures import Pictures
from .plugin_calls import call_plugin, check_ids
from .routed import Part, by_domain, misrouted
from .views import Batch

_TEST_BATCH = 256
_LEAST_BATCHES = 4  # of a sealed run, however few test images there are

#: Arrays of predictions by name.
Predictions = dict[str, np.ndarray]


@dataclass
class Evaluation:
    """Tests the method that `executor` runs on the test images of a stream."""

    name: str
    executor: Executor
    stream: Stream
    pictures: Pictures
    seed: int
    progress: Progress
    truth: LabelCopies = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tests = [(domain.name, domain.test) for domain in self.stream.domains]
        self.truth = LabelCopies([*tests, *self.stream.unseen])

    def seen(self, t: int, state: State) -> tuple[dict[str, Any], Predictions]:
        """Predict all test images of domains 0..t in a random mixture and score them.

        `state` is the method's before that; predicting must not change it.
        """
        tests = [domain.test for domain in self.stream.domains[: t + 1]]
        domain_of = np.repeat(np.arange(t + 1), [len(test) for test in tests])
        order = self._order("test order", t, len(domain_of))
        features = self._features(tests)
        everything = _joined(tests)
        twin = self.executor.twin(state) if isinstance(self.executor, InProcess) else None
        self.executor.begin("predict", t)
        routed, classes = _unknown(len(order)), _unknown(len(order))
        oracle = _unknown(len(order))
        with self.progress.phase(f"domain {t + 1}: testing", len(order)):
            done = self._predicted(everything, features, order, t, "predict", routed, classes, twin)
            if twin is None:
                _exhaust(done)
            else:
                wrong_ones = misrouted(done, routed, domain_of)
                for rows, batch in by_domain(wrong_ones, self.pictures.backbone.batch_size):
                    with self.pictures.meter.phase("oracle"):
                        oracle[rows] = self._predict_in(batch, domain_of[rows], twin)
        labels = self.truth.of(tests)
        result: dict[str, Any] = {
            "row": accuracy_row(classes == labels, domain_of, t + 1),
            "warnings": [],
        }
        predictions = {"classes": classes.astype(np.int32)}
        if changed := differing(state, self.executor.state()):
            result["warnings"].append(
                f"domain {t + 1}: predicting changed the state ({', '.join(changed)}); "
                "the harness restored it"
            )
            self.executor.restart(state)
        if self.executor.routes:
            right = routed == domain_of
            oracle[right] = classes[right]
            if twin is None:
                self.executor.restart(state)  # what is told of true domains ends with this object
                self.executor.begin("oracle", t)
                for rows, batch in self._batches(everything, features, order[~right[order]]):
                    with self.pictures.meter.phase("oracle"):
                        oracle[rows] = self._predict_in(batch, domain_of[rows])
            labels = self.truth.of(tests)
            result["oracle_row"] = accuracy_row(oracle == labels, domain_of, t + 1)
            result["routing"] = 100.0 * float((routed == domain_of).mean())
            predictions["routed"] = routed.astype(np.int16)
            predictions["oracle"] = oracle.astype(np.int32)
        return result, predictions

    def unseen(self, t: int) -> tuple[list[float], Predictions]:
        """Predict the test sets of no domain in a random mixture: accuracies and predictions."""
        tests = [samples for _, samples in self.stream.unseen]
        set_of = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        order = self._order("unseen order", t, len(set_of))
        features = self._features(tests)
        everything = _joined(tests)
        self.executor.begin("predict unseen", t)
        routed, classes = _unknown(len(order)), _unknown(len(order))
        with self.progress.phase(f"domain {t + 1}: testing unseen", len(set_of)):
            done = self._predicted(everything, features, order, t, "unseen", routed, classes)
            _exhaust(done)
        predictions = {"unseen_classes": classes.astype(np.int32)}
        if self.executor.routes:
            predictions["unseen_routed"] = routed.astype(np.int16)
        return accuracy_row(classes == self.truth.of(tests), set_of, len(tests)), predictions

    def _order(self, purpose: str, t: int, images: int) -> np.ndarray:
        """The mixture. A method knows the run's seed and could compute what depends on it alone;
        so the order also depends on the ids and the content of all images, which no method
        is given. Their digest is in published records: a sealed run adds a salt."""
        salt = [self.executor.order_salt] if self.executor.order_salt else []
        source = numpy_generator(self.seed, purpose, t, self.stream.digest(), *salt)
        return source.permutation(images)

    def _predicted(
        self,
        tests: Samples,
        features: torch.Tensor | None,
        order: np.ndarray,
        t: int,
        phase: str,
        routed: np.ndarray,
        classes: np.ndarray,
        twin: InProcess | None = None,
    ) -> Iterator[Part]:
        """All `tests`, part by part, after guessed domains (if the method guesses any) and classes
        have been noted; with what a `twin` can go on from."""
        parts: Iterator[Part] = self._batches(tests, features, order)
        routes = self.executor.routes
        if routes:
            guessed = self._routed(parts, routed, t, phase)
            parts = by_domain(guessed, self.pictures.backbone.batch_size)
        for rows, batch in parts:
            with self.pictures.meter.phase(phase):
                if twin is not None and isinstance(self.executor, InProcess):
                    batch = self.executor.with_shared_part(batch)
                classes[rows] = (
                    self._predict_in(batch, routed[rows])
                    if routes
                    else self._ids("predict", batch, len(self.stream.class_names))
                )
            self.pictures.meter.count(phase, len(rows))
            self.progress.advance(len(rows))
            yield rows, batch

    def _features(self, tests: list[Samples]) -> torch.Tensor | None:
        if "features" not in self.executor.inputs:
            return None
        return torch.cat([self.pictures.features(test) for test in tests])

    def _batches(
        self, tests: Samples, features: torch.Tensor | None, order: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Batch]]:
        """Test batches in `order`, with the inputs that the method declared."""
        device = self.pictures.backbone.device
        size = _TEST_BATCH
        if self.executor.order_salt:  # whoever uses the whole batch then differs from before
            size = min(size, len(order) // _LEAST_BATCHES + 1)
        parts = [order[i : i + size] for i in range(0, len(order), size)]
        images: Iterator[torch.Tensor | None] = repeat(None, len(parts))
        if "images" in self.executor.inputs:
            views = self.pictures.batches(tests, ((rows, None) for rows in parts))
            images = (self.pictures.transform.normalise(each, device) for each in views)
        for rows, pixels in zip(parts, images, strict=True):
            yield rows, Batch(pixels, None if features is None else features[rows].to(device))

    def _routed(
        self, parts: Iterator[tuple[np.ndarray, Batch]], routed: np.ndarray, t: int, phase: str
    ) -> Iterator[tuple[np.ndarray, Batch, np.ndarray]]:
        """Test batches with the domains that a router guesses, which are noted in `routed`."""
        for rows, batch in parts:
            with self.pictures.meter.phase(phase):
                routed[rows] = self._ids("predict_domain", batch, t + 1)
            yield rows, batch, routed[rows]

    def _predict_in(
        self, batch: Batch, domains: np.ndarray, twin: Executor | None = None
    ) -> np.ndarray:
        """The classes of a batch under the given domains."""
        given = torch.from_numpy(domains).to(self.pictures.backbone.device)
        limit = len(self.stream.class_names)
        return self._ids("predict_in_domain", batch, limit, given, twin)

    def _ids(
        self,
        call: Call,
        batch: Batch,
        limit: int,
        domains: torch.Tensor | None = None,
        twin: Executor | None = None,
    ) -> np.ndarray:
        ids = (twin or self.executor).predict(call, batch, domains)
        call_plugin(self.name, call, lambda: check_ids(call, ids, len(batch), limit))
        return ids


def _unknown(images: int) -> np.ndarray:
    return np.full(images, -1)


def _exhaust(done: Iterator[Part]) -> None:
    for _ in done:
        pass


def differing(one: State, other: State) -> list[str]:
    """The names under which two states differ, sorted."""
    return sorted(
        name
        for name in one.keys() | other.keys()
        if name not in one or name not in other or not _equal(one[name], other[name])
    )


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _joined(parts: list[Samples]) -> Samples:
    """Several sample sets of one stream as one; each id keeps its own loader."""
    loaders = {id_: part.load for part in parts for id_ in part.ids}
    return Samples(
        tuple(id_ for part in parts for id_ in part.ids),
        np.concatenate([part.labels for part in parts]),
        lambda id_: loaders[id_](id_),
        tuple(key for part in parts for key in part.keys),
    )
