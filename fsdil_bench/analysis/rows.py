"""The rows of a board: one per method, config and code version, the best AA* first."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fsdil_bench.records.metrics import METRICS, mean_and_std, unseen_accuracy
from fsdil_bench.records.record import Record
from fsdil_bench.runs.audit import worst

from .boards import Board, Sheet, make_sheets
from .standing import Standing, standings
from .unfinished import Unfinished

RowKey = tuple[str, str]

_LONGEST_OPTIONS = 40  # letters of a label that tell rows of one method apart


@dataclass(frozen=True)
class Cost:
    """What a row took: means over its runs for times, the largest for sizes.

    Seconds per image are for each training image of the stream, however often it was shown, and for
    each prediction.
    """

    learn_seconds: float
    learn_per_image: float
    predict_per_image: float
    trained_parameters: int
    state_bytes: int
    peak_memory_bytes: int


@dataclass(frozen=True)
class Row:
    """One method with one config and one code version on one board.

    A row without records stands for runs that were begun and not finished. `scores` holds mean and
    population standard deviation over seeds, `standings` the interval and how the row compares to
    the best, both by metric.
    """

    key: RowKey
    label: str
    records: tuple[Record, ...]
    unfinished: tuple[Unfinished, ...]
    missing_seeds: tuple[int, ...]
    scores: dict[str, tuple[float | None, float | None]]
    standings: dict[str, Standing]

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.key[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds of its finished runs."""
        return sorted(record.spec["seed"] for record in self.records)

    @property
    def exemplar_free(self) -> bool:
        """Whether the method keeps no old images; what did not finish is not a ceiling."""
        return all(record.method["exemplar_free"] for record in self.records)

    @property
    def keeps_features(self) -> bool:
        """Whether the state can hold the feature of a single image; older records do not say."""
        return any(record.method.get("keeps_features", False) for record in self.records)

    @property
    def head(self) -> str:
        """What classifies, for methods that have a choice of it: their option of this name."""
        return str(json.loads(self.key[1])[0].get("head", ""))

    @property
    def sealed(self) -> int:
        """How many of its runs were sealed."""
        return sum(record.sealed for record in self.records)

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
        """Accuracy at the end on test sets of no domain."""
        return mean_and_std([unseen_accuracy(record.unseen) for record in self.records])

    @property
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

    def state(self) -> str:
        """What became of runs without a record: "", "failed", "1 incomplete, 1 failed" ..."""
        counts = Counter(run.state for run in self.unfinished)
        if len(self.unfinished) == 1 and not self.records:
            return self.unfinished[0].state
        return ", ".join(f"{counts[word]} {word}" for word in sorted(counts))


def rows_of(sheet: Sheet) -> dict[int, list[Row]]:
    """The rows of every board of a sheet, by shots; a method has the same label on all of them."""
    labels = _labels([_members(board) for board in sheet.boards])
    return {board.shots: _rows(board, labels) for board in sheet.boards}


def record_rows(records: Sequence[Record]) -> list[tuple[Record, ...]]:
    """The finished runs of every row of all boards."""
    boards = [board for sheet in make_sheets(records) for board in sheet.boards]
    return [tuple(own) for board in boards for own, _ in _members(board).values()]


def _rows(board: Board, labels: Mapping[RowKey, str]) -> list[Row]:
    members = _members(board)
    rivals = {
        key: records
        for key, (records, _) in members.items()
        if records and all(record.method["exemplar_free"] for record in records)
    }
    standing = standings({key: each for key, (each, _) in members.items() if each}, set(rivals))
    rows = []
    for key, (records, unfinished) in members.items():
        finished = {record.spec["seed"] for record in records}
        scores = {m: mean_and_std([r.metrics[m] for r in records]) for m in METRICS}
        rows.append(
            Row(
                key=key,
                label=labels[key],
                records=tuple(records),
                unfinished=tuple(unfinished),
                missing_seeds=tuple(seed for seed in board.seeds if seed not in finished),
                scores=scores,
                standings=standing.get(key, {}),
            )
        )
    # Rounded, so that noise in the last bit never decides about the order.
    return sorted(rows, key=lambda row: (-round(row.scores["AA*"][0] or -1.0, 8), row.label))


def _members(board: Board) -> dict[RowKey, tuple[list[Record], list[Unfinished]]]:
    rows: dict[RowKey, tuple[list[Record], list[Unfinished]]] = defaultdict(lambda: ([], []))
    for record in board.records:
        rows[_row_key(record.spec, record.method["code"])][0].append(record)
    for run in board.unfinished:
        # Its code is not known; of rows that differ in code alone, the first takes it.
        own = [key for key, (records, _) in rows.items() if records and _same(records[0], run)]
        rows[min(own) if own else _row_key(run.spec, None)][1].append(run)
    return dict(sorted(rows.items()))


def _same(record: Record, run: Unfinished) -> bool:
    return all(record.spec[name] == run.spec[name] for name in ("method", "config"))


def _row_key(spec: Mapping[str, Any], code: Any) -> RowKey:
    return spec["method"], json.dumps([spec["config"], code], sort_keys=True)


def _labels(boards: Sequence[Mapping[RowKey, Any]]) -> dict[RowKey, str]:
    """The method's name; where several rows have the same, with what tells them apart."""
    methods: dict[str, list[RowKey]] = defaultdict(list)
    for key in sorted({key for board in boards for key in board}):
        methods[key[0]].append(key)
    labels: dict[RowKey, str] = {}
    for method, keys in methods.items():
        labels |= {keys[0]: method} if len(keys) == 1 else _told_apart(method, keys)
    return labels


def _told_apart(method: str, keys: Sequence[RowKey]) -> dict[RowKey, str]:
    """Labels with the options that differ, if those few words are enough, else with a hash."""
    configs = [json.loads(told_apart)[0] for _, told_apart in keys]
    names = sorted({name for config in configs for name in config})
    differ = [name for name in names if len({json.dumps(c.get(name)) for c in configs}) > 1]
    words = [", ".join(f"{name}={_plain(c.get(name))}" for name in differ) for c in configs]
    if len(set(words)) < len(keys) or max(map(len, words)) > _LONGEST_OPTIONS:
        words = [hashlib.blake2b(told.encode(), digest_size=2).hexdigest() for _, told in keys]
    return {key: f"{method} [{word}]" for key, word in zip(keys, words, strict=True)}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
