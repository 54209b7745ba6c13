"""A row of a board: the runs of one method with one set of options and one version of its code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from fsdil_bench.records.metrics import mean_and_std, unseen_accuracy
from fsdil_bench.records.record import Record
from fsdil_bench.records.verdict_file import SavedVerdict
from fsdil_bench.runs.audit import worst

from .evidence import competes, for_development, ordinary_differs, verdicts_of
from .grouping import RowKey
from .scores import Score
from .unfinished import Unfinished


@dataclass(frozen=True)
class Cost:
    """What the runs of a row took: the mean of times, the largest of sizes.

    Seconds per image count every training image of the stream once, however often it was shown, and
    every prediction.
    """

    learn_seconds: float
    learn_per_image: float
    predict_per_image: float
    trained_parameters: int
    state_bytes: int
    peak_memory_bytes: int


@dataclass(frozen=True)
class Row:
    """The finished and unfinished runs of a method that differ in the seed alone.

    `missing_seeds` are seeds that other rows of the board have. `scores` are by metric.
    `differences` say which of its runs are there twice, with different predictions.
    """

    key: RowKey
    label: str
    records: tuple[Record, ...]
    unfinished: tuple[Unfinished, ...]
    missing_seeds: tuple[int, ...]
    scores: dict[str, Score]
    differences: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.key.method

    @property
    def seeds(self) -> list[int]:
        """The seeds of its finished runs."""
        return sorted(record.seed for record in self.records)

    @property
    def exemplar_free(self) -> bool:
        """Whether the method keeps no old images; assumed where no run is finished."""
        return all(record.exemplar_free for record in self.records)

    @property
    def keeps_features(self) -> bool:
        """Whether the state can hold the feature of a single image; older records do not say."""
        return any(record.method.get("keeps_features", False) for record in self.records)

    @property
    def head(self) -> str:
        """The option `head` of methods that offer a choice of classifier, else nothing."""
        return str(self.key.options.get("head", ""))

    @property
    def sealed(self) -> int:
        """How many of its runs were sealed."""
        return sum(record.sealed for record in self.records)

    @property
    def third_party(self) -> bool:
        """Whether a plugin outside this package offers the method."""
        return any(record.third_party for record in self.records)

    @property
    def for_development(self) -> bool:
        """Whether it is a third-party method with a run that was not sealed: no evidence."""
        return for_development(self.records)

    @property
    def competes(self) -> bool:
        """Whether it may be the best of its board."""
        return bool(self.records) and competes(self.records)

    @cached_property
    def verdicts(self) -> list[SavedVerdict]:
        """The verdicts on its runs that were repeated; a bad one first, then the newest."""
        return verdicts_of(self.records)

    @property
    def verified(self) -> SavedVerdict | None:
        """The verdict that says most about the row, None if no run was repeated."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def differs_from_ordinary(self) -> bool:
        """Whether a sealed run predicted differently from the ordinary run of the same id."""
        return bool(self.differences) or ordinary_differs(self.records)

    @property
    def suspicions(self) -> list[str]:
        """What the audit of sealed processes found, each sentence once."""
        found = [text for r in self.records for text in r.provenance.get("suspicions", ())]
        return sorted(set(found))

    @property
    def doubts(self) -> list[str]:
        """What speaks against its numbers, in a few words each."""
        known = {
            "not sealed": self.for_development,
            "differs from the ordinary run": self.differs_from_ordinary,
            "re-run differs": self.verified is not None and self.verified.outcome == "differs",
            "suspicious": bool(self.suspicions),
        }
        return [word for word, true in known.items() if true]

    @property
    def audit(self) -> str:
        """What the state could hold by its size: "images", "features" or nothing."""
        return worst([found for record in self.records for found in record.audit or ()])

    @property
    def oracle(self) -> float | None:
        """AA* with the true domain of every image, for methods that guess it."""
        return mean_and_std([r.oracle_metrics["AA*"] for r in self.records if r.oracle_metrics])[0]

    @property
    def routing(self) -> float | None:
        """Percent of the test images whose domain is guessed right at the end."""
        routing = [record.routing[-1] for record in self.records if record.routing]
        return fmean(routing) if routing else None

    @property
    def unseen(self) -> tuple[float | None, float | None]:
        """Mean and deviation of the accuracy at the end on test sets of no domain."""
        return mean_and_std([unseen_accuracy(record.unseen) for record in self.records])

    @cached_property
    def cost(self) -> Cost:
        """What the runs took."""
        seconds = [record.cost["seconds"] for record in self.records]
        learned = sum(d["train"] for r in self.records for d in r.scenario["domains"])
        predicted = sum(record.cost["images"].get("predict", 0) for record in self.records)
        learning, predicting = (sum(s.get(p, 0.0) for s in seconds) for p in ("learn", "predict"))
        return Cost(
            learn_seconds=learning / len(seconds),
            learn_per_image=learning / max(1, learned),
            predict_per_image=predicting / max(1, predicted),
            trained_parameters=max(max(r.cost["trained_parameters"]) for r in self.records),
            state_bytes=max(record.cost["state_bytes"][-1] for record in self.records),
            peak_memory_bytes=max(record.cost["peak_memory_bytes"] for record in self.records),
        )

    def unfinished_states(self) -> str:
        """What happened to runs without a record: "", "failed", "1 failed, 1 incomplete" ..."""
        counts = Counter(run.state for run in self.unfinished)
        if len(self.unfinished) == 1 and not self.records:
            return self.unfinished[0].state
        return ", ".join(f"{counts[word]} {word}" for word in sorted(counts))
