"""The protocol of few-shot domain-incremental learning: the loop that the harness owns.

For every domain t: the method learns it from its (few) training images, then predicts the test
images of domains 0..t in one random mixture, without labels, domain ids or order. From the
predictions follow the row A[t, 0..t], the routing accuracy and the oracle row. Each finished
domain is kept on disk; an interrupted run goes on behind the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .cost import state_bytes
from .errors import FsdilError, PluginError
from .folder import RunFolder
from .method import Method, RouterMethod, State
from .metrics import accuracy_row
from .pictures import Pictures
from .progress import Progress
from .scenario import Samples, Stream
from .seeds import numpy_generator, seed_everything
from .views import Batch, TrainDomain

_TEST_BATCH = 256


@dataclass
class Outcome:
    """All that the loop produced."""

    matrix: list[list[float]] = field(default_factory=list)
    oracle_matrix: list[list[float]] = field(default_factory=list)
    routing: list[float] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)
    trained_parameters: list[int] = field(default_factory=list)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    predictions: dict[str, np.ndarray] = field(default_factory=dict)
    costs: list[dict[str, Any]] = field(default_factory=list)
    resumed_after: int = 0


@dataclass(frozen=True)
class Loop:
    """One method against one stream whose shots are drawn."""

    name: str
    method: Method
    stream: Stream
    pictures: Pictures
    seed: int
    exemplar_free: bool
    folder: RunFolder
    progress: Progress
    keep_checkpoints: bool = False
    after_base: Callable[[], None] | None = None

    def run(self) -> Outcome:
        """Go through all domains that are not finished yet."""
        outcome = Outcome()
        done = self._resume(outcome)
        outcome.resumed_after = done
        for t in range(done, len(self.stream.domains)):
            name = self.stream.domains[t].name
            train = self._train_domain(t)
            self._learn(train, t)
            train.close()
            result, predictions = self._evaluate(t)
            state = self._state()
            result |= {
                "cost": self.pictures.meter.take(),
                "state_bytes": state_bytes(state),
                "trained_parameters": int(self.method.trained_parameters()),
                "diagnostics": self.method.diagnostics(),
            }
            self.folder.save_domain(t, state, result, predictions)
            if t == 0 and self.after_base is not None:
                self.after_base()
            if t and not self.keep_checkpoints:
                self.folder.drop_state(t - 1)
            self._take(outcome, result, predictions)
            row = "  ".join(f"{value:5.1f}" for value in result["row"])
            self.progress.say(f"domain {t + 1}/{len(self.stream.domains)} {name:<16} {row}")
            self.folder.log(f"domain {t} ({name}): {row}")
        return outcome

    def _resume(self, outcome: Outcome) -> int:
        done = min(self.folder.finished_domains(), len(self.stream.domains))
        for t in range(done):
            self._take(outcome, *self.folder.load_result(t))
        if done:
            device = self.pictures.backbone.device
            state = {k: v.to(device) for k, v in self.folder.load_state(done - 1).items()}
            self._call("load_state_dict", lambda: self.method.load_state_dict(state))
            self.progress.say(f"going on after domain {done} of {len(self.stream.domains)}")
        return done

    def _train_domain(self, t: int) -> TrainDomain:
        earlier = None
        if not self.exemplar_free:
            earlier = tuple(self._view(i, during=t, earlier=()) for i in range(t))
        return self._view(t, during=t, earlier=earlier)

    def _view(self, i: int, during: int, earlier: tuple[TrainDomain, ...] | None) -> TrainDomain:
        return TrainDomain(
            i,
            self.stream.domains[i].train,
            self.stream.class_names,
            self.pictures,
            (self.seed, during),
            self.progress,
            earlier=earlier,
        )

    def _learn(self, train: TrainDomain, t: int) -> None:
        seed_everything(self.seed, "learn", t)
        with self.pictures.meter.phase("learn"):
            self._call("learn", lambda: self.method.learn(train))
        self.pictures.backbone.check_untouched()

    def _evaluate(self, t: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Predict all test images of domains 0..t in a random mixture and score them."""
        tests = [domain.test for domain in self.stream.domains[: t + 1]]
        labels = np.concatenate([test.labels for test in tests])
        domain_of = np.repeat(np.arange(t + 1), [len(test) for test in tests])
        order = numpy_generator(self.seed, "test order", t).permutation(len(labels))
        features = None
        if "features" in self.method.inputs:
            features = torch.cat([self.pictures.features(test) for test in tests])
        everything = _joined(tests)
        meter = self.pictures.meter
        seed_everything(self.seed, "predict", t)

        routed = np.full(len(labels), -1)
        classes = np.full(len(labels), -1)
        oracle = np.full(len(labels), -1)
        with self.progress.phase(f"domain {t + 1}: testing", len(labels)):
            for start in range(0, len(order), _TEST_BATCH):
                rows = order[start : start + _TEST_BATCH]
                batch = self._batch(everything, features, rows)
                with meter.phase("predict"):
                    routed[rows], classes[rows] = self._predict(batch, t)
                meter.count("predict", len(rows))
                self.progress.advance(len(rows))
        result: dict[str, Any] = {"row": accuracy_row(classes == labels, domain_of, t + 1)}
        predictions = {"classes": classes.astype(np.int32)}
        if isinstance(self.method, RouterMethod):
            oracle[:] = classes
            wrong = np.flatnonzero(routed != domain_of)
            for start in range(0, len(wrong), _TEST_BATCH):
                rows = wrong[start : start + _TEST_BATCH]
                batch = self._batch(everything, features, rows)
                with meter.phase("oracle"):
                    oracle[rows] = self._predict_given(batch, domain_of[rows])
            result["oracle_row"] = accuracy_row(oracle == labels, domain_of, t + 1)
            result["routing"] = 100.0 * float((routed == domain_of).mean())
            predictions["routed"] = routed.astype(np.int16)
            predictions["oracle"] = oracle.astype(np.int32)
        return result, predictions

    def _batch(self, tests: Samples, features: torch.Tensor | None, rows: np.ndarray) -> Batch:
        device = self.pictures.backbone.device
        images = None
        if "images" in self.method.inputs:
            views = self.pictures.plain(tests.subset(rows))
            images = self.pictures.transform.normalise(views, device)
        return Batch(images, None if features is None else features[rows].to(device))

    @torch.no_grad()
    def _predict(self, batch: Batch, t: int) -> tuple[np.ndarray, np.ndarray]:
        classes = len(self.stream.class_names)
        if not isinstance(self.method, RouterMethod):
            predicted = self._call("predict", lambda: self.method.predict(batch))
            return np.full(len(batch), -1), self._ids("predict", predicted, len(batch), classes)
        method = self.method
        domains = self._call("predict_domain", lambda: method.predict_domain(batch))
        routed = self._ids("predict_domain", domains, len(batch), t + 1)
        return routed, self._predict_given(batch, routed)

    @torch.no_grad()
    def _predict_given(self, batch: Batch, domains: np.ndarray) -> np.ndarray:
        method = self.method
        assert isinstance(method, RouterMethod)
        given = torch.from_numpy(domains).to(self.pictures.backbone.device)
        predicted = self._call("predict_in_domain", lambda: method.predict_in_domain(batch, given))
        return self._ids("predict_in_domain", predicted, len(batch), len(self.stream.class_names))

    def _ids(self, call: str, values: Any, length: int, limit: int) -> np.ndarray:
        """Check what a plugin returned: one integer id below `limit` for every image."""
        try:
            array = values.detach().cpu().numpy() if torch.is_tensor(values) else np.asarray(values)
        except Exception as error:
            raise PluginError(f"method '{self.name}': {call} returned {type(values)}") from error
        if array.dtype.kind not in "iu":
            raise PluginError(
                f"method '{self.name}': {call} returned {array.dtype} of shape {array.shape}",
                "It must return integer ids, for instance logits.argmax(1).",
            )
        if array.shape != (length,):
            raise PluginError(
                f"method '{self.name}': {call} returned shape {array.shape} for {length} images",
                f"It must return one id per image, shape ({length},).",
            )
        if length and not 0 <= array.min() <= array.max() < limit:
            raise PluginError(
                f"method '{self.name}': {call} returned ids from {array.min()} to {array.max()}",
                f"Ids must be from 0 to {limit - 1}.",
            )
        return array.astype(np.int64)

    def _state(self) -> State:
        state = self._call("state_dict", self.method.state_dict)
        if not isinstance(state, dict) or not all(
            isinstance(k, str) and torch.is_tensor(v) for k, v in state.items()
        ):
            raise PluginError(
                f"method '{self.name}': state_dict must be a flat dict of named tensors",
                "Store a number as torch.tensor(number).",
            )
        return state

    def _call(self, what: str, function: Callable[[], Any]) -> Any:
        """Call a plugin; whatever it raises is reported under its name."""
        try:
            return function()
        except FsdilError as error:
            raise type(error)(f"method '{self.name}': {error.message}", error.remedy) from error
        except torch.cuda.OutOfMemoryError as error:
            raise PluginError(
                f"method '{self.name}' ran out of GPU memory in {what}",
                "Lower its batch size with --set, or use --device cpu.",
            ) from error
        except Exception as error:
            raise PluginError(
                f"method '{self.name}' raised {type(error).__name__} in {what}: {error}",
                "The traceback is in the run's log.txt; --debug shows it here.",
            ) from error

    def _take(
        self, outcome: Outcome, result: dict[str, Any], predictions: dict[str, np.ndarray]
    ) -> None:
        """Add a finished domain to the outcome."""
        t = len(outcome.matrix)
        outcome.matrix.append(result["row"])
        if "oracle_row" in result:
            outcome.oracle_matrix.append(result["oracle_row"])
            outcome.routing.append(result["routing"])
        outcome.state_bytes.append(result["state_bytes"])
        outcome.trained_parameters.append(result["trained_parameters"])
        outcome.diagnostics.append(result["diagnostics"])
        outcome.costs.append(result["cost"])
        outcome.predictions |= {f"{name}_{t}": array for name, array in predictions.items()}


def _joined(parts: list[Samples]) -> Samples:
    """Several sample sets of one stream as one; each id remembers its own loader."""
    loaders = {id_: part.load for part in parts for id_ in part.ids}
    return Samples(
        tuple(id_ for part in parts for id_ in part.ids),
        np.concatenate([part.labels for part in parts]),
        lambda id_: loaders[id_](id_),
        tuple(key for part in parts for key in part.keys),
    )
