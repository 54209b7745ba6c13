"""The protocol of few-shot domain-incremental learning: the loop that the harness owns.

For every domain t: the method learns it from its (few) training images, then predicts the test
images of domains 0..t in one random mixture, without labels, domain ids or order. From the
predictions follow the row A[t, 0..t], the routing accuracy and the oracle row. Test sets that
belong to no domain are predicted afterwards, mixed among themselves. Each finished domain is kept
on disk; an interrupted run resumes behind the last one.

The state that counts is the one right after learning. The next domain is learned by a method that
is built again and given that state, so nothing of the test images, and nothing of the true domains
that the oracle row needs, reaches it.

In a sealed run (`runs.sealed`) the method is a stand-in: the real one lives in a process of
its own for every domain learned and for every pass over test images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.plugins.method import Method, RouterMethod, State
from fsdil_bench.progress import Progress
from fsdil_bench.records.metrics import accuracy_row
from fsdil_bench.seeds import numpy_generator, seed_everything

from .cost import state_bytes
from .ledger import Ledger
from .pictures import Pictures
from .routed import by_domain
from .run_folder import RunFolder
from .self_report import self_report
from .views import Batch, TrainDomain

if TYPE_CHECKING:
    from .sealed.parent import SealedMethod

_TEST_BATCH = 256


@dataclass
class Outcome:
    """All that the loop produced."""

    matrix: list[list[float]] = field(default_factory=list)
    oracle_matrix: list[list[float]] = field(default_factory=list)
    routing: list[float] = field(default_factory=list)
    unseen_matrix: list[list[float]] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)
    trained_parameters: list[int] = field(default_factory=list)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    served: list[dict[str, Any] | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    peak_memory_bytes: int = 0
    predictions: dict[str, np.ndarray] = field(default_factory=dict)
    costs: list[dict[str, Any]] = field(default_factory=list)
    resumed_after: int = 0


@dataclass
class Loop:
    """One method against one stream whose shots are drawn.

    `build` gives the method before it has learned anything. `shots` is how many images per class a
    later domain may hand out. In a sealed run `sealed` stands for the method all the time.
    """

    name: str
    build: Callable[[], Method]
    stream: Stream
    pictures: Pictures
    seed: int
    exemplar_free: bool
    folder: RunFolder
    progress: Progress
    keep_checkpoints: bool = False
    after_base: Callable[[], None] | None = None
    shots: int | None = None
    sealed: SealedMethod | None = None
    method: Method = field(init=False, repr=False)

    def run(self) -> Outcome:
        """Go through all domains that are not finished yet."""
        outcome = Outcome()
        self.method = self.build()
        done = self._resume(outcome)
        outcome.resumed_after = done
        for t in range(done, len(self.stream.domains)):
            name = self.stream.domains[t].name
            ledger = Ledger()
            train = self._train_domain(t, ledger)
            self._learn(train, t)
            train.close()
            ledger.check(self.shots, self.stream.class_names)
            if self.exemplar_free:
                self.pictures.forget(self.stream.domains[t].train)
            state = _copy(self._state())
            report = self.sealed.self_report() if self.sealed else self_report(self.method)
            result, predictions = self._evaluate(t, state)
            if self.stream.unseen:
                self._renew(state)
                result["unseen_row"], others = self._evaluate_unseen(t)
                predictions |= others
            result["warnings"] += [f"domain {t + 1}: {text}" for text in report.warnings]
            result |= {
                "state_bytes": state_bytes(state),
                "trained_parameters": report.trained_parameters,
                "diagnostics": report.diagnostics,
                "served": ledger.summary(t, len(self.stream.domains[t].train)),
            }
            if self.sealed is not None:
                result["peak_memory_bytes"] = self.sealed.peak_memory_bytes
            result["cost"] = self.pictures.meter.take()
            self.folder.save_domain(t, state, result, predictions)
            if t == 0 and self.after_base is not None:
                self.after_base()
            if t and not self.keep_checkpoints:
                self.folder.drop_state(t - 1)
            self._take(outcome, result, predictions)
            for text in result["warnings"]:
                self.progress.say(f"warning: {text}")
            if t + 1 < len(self.stream.domains):
                self._renew(state)
            row = "  ".join(f"{value:5.1f}" for value in result["row"])
            if "unseen_row" in result:
                row += "  | " + "  ".join(f"{value:5.1f}" for value in result["unseen_row"])
            self.progress.say(f"domain {t + 1}/{len(self.stream.domains)} {name:<16} {row}")
            self.folder.log(f"domain {t} ({name}): {row}")
        return outcome

    def _resume(self, outcome: Outcome) -> int:
        done = min(self.folder.finished_domains(), len(self.stream.domains))
        for t in range(done):
            self._take(outcome, *self.folder.load_result(t))
        if done:
            self._load(self.folder.load_state(done - 1))
            self.progress.say(f"going on after domain {done} of {len(self.stream.domains)}")
        return done

    def _renew(self, state: State) -> None:
        """Go on with a method that knows `state` and nothing else: as after an interruption."""
        if self.sealed is None:
            self.method = self.build()
        self._load(state)

    def _load(self, state: State) -> None:
        device = self.pictures.backbone.device
        own = {name: tensor.to(device, copy=True) for name, tensor in state.items()}
        self._call("load_state_dict", lambda: self.method.load_state_dict(own))

    def _train_domain(self, t: int, ledger: Ledger) -> TrainDomain:
        earlier = None
        if not self.exemplar_free:
            earlier = tuple(self._view(i, t, ledger, earlier=()) for i in range(t))
        return self._view(t, t, ledger, earlier)

    def _view(
        self, i: int, during: int, ledger: Ledger, earlier: tuple[TrainDomain, ...] | None
    ) -> TrainDomain:
        return TrainDomain(
            i,
            self.stream.domains[i].train,
            self.stream.class_names,
            self.pictures,
            (self.seed, during),
            self.progress,
            earlier=earlier,
            ledger=ledger,
        )

    def _begin(self, purpose: str, t: int) -> None:
        """Seed what comes next; in a sealed run, it gets a process of its own."""
        seed_everything(self.seed, purpose, t)
        if self.sealed is not None:
            self.sealed.begin(purpose, t)

    def _order(self, purpose: str, t: int, images: int) -> np.ndarray:
        """The mixture. A method knows the run's seed and could work out what follows from it
        alone; so the order also depends on the ids and the content of all images, which no method
        is given."""
        return numpy_generator(self.seed, purpose, t, self.stream.digest()).permutation(images)

    def _learn(self, train: TrainDomain, t: int) -> None:
        self._begin("learn", t)
        with self.pictures.meter.phase("learn"):
            self._call("learn", lambda: self.method.learn(train))
        self.pictures.backbone.check_untouched()

    def _evaluate(self, t: int, state: State) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Predict all test images of domains 0..t in a random mixture and score them.

        `state` is the method's before that; predicting must not change it.
        """
        tests = [domain.test for domain in self.stream.domains[: t + 1]]
        domain_of = np.repeat(np.arange(t + 1), [len(test) for test in tests])
        order = self._order("test order", t, len(domain_of))
        features = self._features(tests)
        everything = _joined(tests)
        labels = everything.labels
        self._begin("predict", t)
        with self.progress.phase(f"domain {t + 1}: testing", len(labels)):
            routed, classes = self._predict_all(everything, features, order, t, "predict")
        result: dict[str, Any] = {
            "row": accuracy_row(classes == labels, domain_of, t + 1),
            "warnings": [],
        }
        predictions = {"classes": classes.astype(np.int32)}
        if changed := differing(state, self._state()):
            result["warnings"].append(
                f"domain {t + 1}: predicting changed the state ({', '.join(changed)}); "
                "the harness restored it"
            )
            self._renew(state)
        if isinstance(self.method, RouterMethod):
            oracle = classes.copy()
            wrong = np.flatnonzero(routed != domain_of)
            if self.sealed is not None:
                self.sealed.begin("oracle", t)
                wrong = order[(routed != domain_of)[order]]
            for rows, batch in self._batches(everything, features, wrong):
                with self.pictures.meter.phase("oracle"):
                    oracle[rows] = self._predict_given(batch, domain_of[rows])
            result["oracle_row"] = accuracy_row(oracle == labels, domain_of, t + 1)
            result["routing"] = 100.0 * float((routed == domain_of).mean())
            predictions["routed"] = routed.astype(np.int16)
            predictions["oracle"] = oracle.astype(np.int32)
        return result, predictions

    def _evaluate_unseen(self, t: int) -> tuple[list[float], dict[str, np.ndarray]]:
        """Predict the test sets of no domain in a random mixture: accuracies and predictions."""
        tests = [samples for _, samples in self.stream.unseen]
        set_of = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        order = self._order("unseen order", t, len(set_of))
        features = self._features(tests)
        everything = _joined(tests)
        self._begin("predict unseen", t)
        with self.progress.phase(f"domain {t + 1}: testing unseen", len(set_of)):
            routed, classes = self._predict_all(everything, features, order, t, "unseen")
        predictions = {"unseen_classes": classes.astype(np.int32)}
        if isinstance(self.method, RouterMethod):
            predictions["unseen_routed"] = routed.astype(np.int16)
        return accuracy_row(classes == everything.labels, set_of, len(tests)), predictions

    def _predict_all(
        self,
        tests: Samples,
        features: torch.Tensor | None,
        order: np.ndarray,
        t: int,
        phase: str,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Guessed domains (-1 if the method guesses none) and classes of all `tests`."""
        routed, classes = np.full(len(tests), -1), np.full(len(tests), -1)
        parts = self._batches(tests, features, order)
        routes = isinstance(self.method, RouterMethod)
        if routes:
            guessed = self._routed(parts, routed, t, phase)
            parts = by_domain(guessed, self.pictures.backbone.batch_size)
        for rows, batch in parts:
            with self.pictures.meter.phase(phase):
                classes[rows] = (
                    self._predict_given(batch, routed[rows]) if routes else self._predict(batch)
                )
            self.pictures.meter.count(phase, len(rows))
            self.progress.advance(len(rows))
        return routed, classes

    def _features(self, tests: list[Samples]) -> torch.Tensor | None:
        if "features" not in self.method.inputs:
            return None
        return torch.cat([self.pictures.features(test) for test in tests])

    def _batches(
        self, tests: Samples, features: torch.Tensor | None, order: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Batch]]:
        """Test batches in `order`, with what the method declared to need."""
        device = self.pictures.backbone.device
        parts = [order[i : i + _TEST_BATCH] for i in range(0, len(order), _TEST_BATCH)]
        images: Iterator[torch.Tensor | None] = repeat(None, len(parts))
        if "images" in self.method.inputs:
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
                routed[rows] = self._predict_domain(batch, t)
            yield rows, batch, routed[rows]

    @torch.no_grad()
    def _predict(self, batch: Batch) -> np.ndarray:
        predicted = self._call("predict", lambda: self.method.predict(batch))
        return self._ids("predict", predicted, len(batch), len(self.stream.class_names))

    @torch.no_grad()
    def _predict_domain(self, batch: Batch, t: int) -> np.ndarray:
        method = self.method
        assert isinstance(method, RouterMethod)
        domains = self._call("predict_domain", lambda: method.predict_domain(batch))
        return self._ids("predict_domain", domains, len(batch), t + 1)

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
        return self.method.state_dict() if self.sealed else checked_state(self.name, self.method)

    def _call(self, what: str, function: Callable[[], Any]) -> Any:
        """Call the plugin. The stand-in of a sealed run raises what is to be said as it is."""
        return function() if self.sealed else call_plugin(self.name, what, function)

    def _take(
        self, outcome: Outcome, result: dict[str, Any], predictions: dict[str, np.ndarray]
    ) -> None:
        """Add a finished domain to the outcome."""
        t = len(outcome.matrix)
        outcome.matrix.append(result["row"])
        if "oracle_row" in result:
            outcome.oracle_matrix.append(result["oracle_row"])
            outcome.routing.append(result["routing"])
        if "unseen_row" in result:
            outcome.unseen_matrix.append(result["unseen_row"])
        outcome.state_bytes.append(result["state_bytes"])
        outcome.trained_parameters.append(result["trained_parameters"])
        outcome.diagnostics.append(result["diagnostics"])
        outcome.warnings += result.get("warnings", [])
        outcome.served.append(result.get("served"))  # None: a domain learned by an older version
        outcome.peak_memory_bytes = max(
            outcome.peak_memory_bytes, result.get("peak_memory_bytes", 0)
        )
        outcome.costs.append(result["cost"])
        outcome.predictions |= {f"{name}_{t}": array for name, array in predictions.items()}


def call_plugin(name: str, what: str, function: Callable[[], Any]) -> Any:
    """Call method `name`; whatever it raises is reported under its name."""
    try:
        return function()
    except FsdilError as error:
        raise type(error)(f"method '{name}': {error.message}", error.remedy) from error
    except torch.cuda.OutOfMemoryError as error:
        raise PluginError(
            f"method '{name}' ran out of GPU memory in {what}",
            "Lower its batch size with --set, or use --device cpu.",
        ) from error
    except Exception as error:
        lacking = "MPS" in str(error)  # torch names it where a type or an operation is missing
        raise PluginError(
            f"method '{name}' raised {type(error).__name__} in {what}: {error}",
            "MPS lacks something that this method needs: use --device cpu."
            if lacking
            else "The traceback is in the run's log.txt; --debug shows it here.",
        ) from error


def checked_state(name: str, method: Method) -> State:
    """The state of method `name`, if it is one."""
    state = call_plugin(name, "state_dict", method.state_dict)
    if not isinstance(state, dict) or not all(
        isinstance(k, str) and torch.is_tensor(v) for k, v in state.items()
    ):
        raise PluginError(
            f"method '{name}': state_dict must be a flat dict of named tensors",
            "Store a number as torch.tensor(number).",
        )
    return state


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


def _copy(state: State) -> State:
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def _joined(parts: list[Samples]) -> Samples:
    """Several sample sets of one stream as one; each id remembers its own loader."""
    loaders = {id_: part.load for part in parts for id_ in part.ids}
    return Samples(
        tuple(id_ for part in parts for id_ in part.ids),
        np.concatenate([part.labels for part in parts]),
        lambda id_: loaders[id_](id_),
        tuple(key for part in parts for key in part.keys),
    )
