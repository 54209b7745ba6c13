"""The protocol of few-shot domain-incremental learning: the loop that the harness owns.

For every domain t, the method learns it from its (few) training images and is then tested
(`runs.evaluation`). Each finished domain is kept on disk; an interrupted run resumes after the
last one.

The state that counts is the one right after learning. The next domain is learned by a method that
is built again and given that state, so nothing of the test images, and nothing of the true domains
that the oracle row needs, reaches it. Where the method does its work, in this process or in
others, is a matter of the `Executor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fsdil_bench.data.scenario import Stream
from fsdil_bench.data.stream_guard import no_streams
from fsdil_bench.plugins.method import State
from fsdil_bench.progress import Progress

from .cost import state_bytes
from .evaluation import Evaluation, Predictions
from .executor import Executor
from .ledger import Ledger
from .pictures import Pictures
from .run_folder import RunFolder
from .self_report import SelfReport
from .views import TrainDomain


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

    def add(self, result: dict[str, Any], predictions: Predictions) -> None:
        """Add a finished domain."""
        t = len(self.matrix)
        self.matrix.append(result["row"])
        if "oracle_row" in result:
            self.oracle_matrix.append(result["oracle_row"])
            self.routing.append(result["routing"])
        if "unseen_row" in result:
            self.unseen_matrix.append(result["unseen_row"])
        self.state_bytes.append(result["state_bytes"])
        self.trained_parameters.append(result["trained_parameters"])
        self.diagnostics.append(result["diagnostics"])
        self.warnings += result.get("warnings", [])
        self.served.append(result.get("served"))  # None: a domain learned by an older version
        self.peak_memory_bytes = max(self.peak_memory_bytes, result.get("peak_memory_bytes", 0))
        self.costs.append(result["cost"])
        self.predictions |= {f"{name}_{t}": array for name, array in predictions.items()}


@dataclass
class Loop:
    """One method against one stream whose shots are drawn.

    `shots` is how many images per class a later domain may hand out. `after_domain` is called with
    every finished domain, also with those that an earlier process had finished (then True).
    """

    name: str
    executor: Executor
    stream: Stream
    pictures: Pictures
    seed: int
    exemplar_free: bool
    folder: RunFolder
    progress: Progress
    keep_checkpoints: bool = False
    after_base: Callable[[], None] | None = None
    after_domain: Callable[[Outcome, int, bool], None] = lambda outcome, t, resumed: None
    shots: int | None = None
    evaluation: Evaluation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.evaluation = Evaluation(
            self.name, self.executor, self.stream, self.pictures, self.seed, self.progress
        )

    def run(self) -> Outcome:
        """Go through all domains that are not finished yet."""
        outcome = Outcome()
        domains = len(self.stream.domains)
        done = outcome.resumed_after = min(self.folder.finished_domains(), domains)
        for t in range(done):
            outcome.add(*self.folder.load_result(t))
        with no_streams():
            self.executor.restart(self.folder.load_state(done - 1) if done else None)
        if done:
            self.progress.say(f"resuming after domain {done} of {domains}")
        for t in range(done):
            self.after_domain(outcome, t, True)
        for t in range(done, domains):
            with no_streams():
                state, result, predictions = self._run_domain(t)
            self.folder.save_domain(t, state, result, predictions)
            if t == 0 and self.after_base is not None:
                self.after_base()
            if t and not self.keep_checkpoints:
                self.folder.drop_state(t - 1)
            outcome.add(result, predictions)
            self._announce(t, result)
            self.after_domain(outcome, t, False)
            if t + 1 < domains:
                with no_streams():
                    self.executor.restart(state)
        return outcome

    def _run_domain(self, t: int) -> tuple[State, dict[str, Any], Predictions]:
        """Learn a domain and test: the state after learning, results and predictions."""
        ledger = Ledger()
        state, report = self._learn(t, ledger)
        result, predictions = self.evaluation.seen(t, state)
        if self.stream.unseen:
            self.executor.restart(state)
            result["unseen_row"], more = self.evaluation.unseen(t)
            predictions |= more
        result["warnings"] += [f"domain {t + 1}: {text}" for text in report.warnings]
        result |= {
            "state_bytes": state_bytes(state),
            "trained_parameters": report.trained_parameters,
            "diagnostics": report.diagnostics,
            "served": ledger.summary(t, len(self.stream.domains[t].train)),
        }
        if self.executor.peak_memory_bytes:
            result["peak_memory_bytes"] = self.executor.peak_memory_bytes
        result["cost"] = self.pictures.meter.take()
        return state, result, predictions

    def _learn(self, t: int, ledger: Ledger) -> tuple[State, SelfReport]:
        """Learn a domain: a copy of the state, and what the method says of itself."""
        train = self._train_domain(t, ledger)
        self.executor.begin("learn", t)
        with self.pictures.meter.phase("learn"):
            self.executor.learn(train)
        self.pictures.backbone.check_untouched()
        train.close()
        ledger.check(self.shots, self.stream.class_names)
        if self.exemplar_free:
            self.pictures.forget(self.stream.domains[t].train)
        state = {name: tensor.detach().clone() for name, tensor in self.executor.state().items()}
        return state, self.executor.self_report()

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

    def _announce(self, t: int, result: dict[str, Any]) -> None:
        """Show the warnings and the row of a finished domain."""
        for text in result["warnings"]:
            self.progress.say(f"warning: {text}")
        name = self.stream.domains[t].name
        row = "  ".join(f"{value:5.1f}" for value in result["row"])
        if "unseen_row" in result:
            row += "  | " + "  ".join(f"{value:5.1f}" for value in result["unseen_row"])
        self.progress.say(f"domain {t + 1}/{len(self.stream.domains)} {name:<16} {row}")
        self.folder.log(f"domain {t} ({name}): {row}")
