"""The record of a run: what was asked, what came out, what it cost, and where it was run.

`record.json` is written last and renamed into place, so its presence means the run is complete.
Per-sample predictions are in a file beside it. The record holds the hash of that file and a hash of
its own content, so an edit by hand is noticed. That catches accidents, not intent: whoever edits a
record can also compute a new hash.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.errors import RecordError
from fsdil_bench.shown import Part, Shown

from .copies import without_contradictions
from .files import read_json
from .form import SCHEMA, form_problems
from .labels import label_hashes, without_foreign_labels
from .predictions import PREDICTIONS_FILE, read_predictions
from .recompute import recompute, score_problems, truth_problems
from .summary import line_of, parts_of

RECORD_FILE = "record.json"

MAX_BYTES = 16 << 20  # of a record.json; usual ones have some ten thousand

#: Fields that a file has only where they are not at this value: earlier records do not have them.
_LEFT_OUT_AT = {
    "unseen": None, "served": None, "audit": None, "sealed": False, "warnings": None,
    "protocol": 1, "content_sha256": None,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Record(Shown):
    """A complete run. Accuracies are percentages; `matrix[t][i]` is A[t, i] for i <= t.

    What was run:
        `run_id` is a hash of everything that decides the result (`records.identity`).
        `spec` is what was asked: method, config, scenario, seed, backbone, precision, order ...
        `scenario` describes the samples: classes, domains with sizes and hashes, transform.
        `method` has the facts about the method: code hashes, weights, exemplar-free or not.
        `protocol` is the version of the harness's own rules (`records.identity.PROTOCOL`).
        `sealed` is true where learning and predicting were separate processes.

    What came out:
        `metrics` are the four scores of `matrix`.
        `oracle_matrix`, `oracle_metrics` and `routing` (percent of the images whose domain was
        guessed right, after every domain) are those of methods that guess the domain.
        `unseen` has, for streams with test sets of no domain, their "names" and a "matrix" with the
        accuracy on each of them after every domain.
        `diagnostics` are what the method reports about itself.
        `warnings` say what went wrong without ending the run, for instance that predicting changed
        the state.

    What it took:
        `cost` has times, memory, parameters and the size of the state.
        `served` says for each domain what its views handed out (`Ledger.summary`).
        `audit` says what the state of an exemplar-free method could hold (`runs.audit`).
        `provenance` says when, where and with which command and packages it was run.

    Records of older versions have no `served`, no `audit` and no `content_sha256`, the hash of all
    other fields (`content_hash`).

    A notebook shows a record with its matrix and its scores; `print` does so as text.
    """

    run_id: str
    spec: dict[str, Any]
    scenario: dict[str, Any]
    matrix: list[list[float]]
    metrics: dict[str, float | None]
    cost: dict[str, Any]
    provenance: dict[str, Any]
    predictions_sha256: str
    oracle_matrix: list[list[float]] | None = None
    oracle_metrics: dict[str, float | None] | None = None
    routing: list[float] | None = None
    unseen: dict[str, Any] | None = None
    served: list[dict[str, Any]] | None = None
    audit: list[dict[str, Any]] | None = None
    sealed: bool = False
    warnings: list[str] | None = None
    protocol: int = 1
    content_sha256: str | None = None
    method: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA
    folder: Path | None = field(default=None, compare=False)

    def _shown_parts(self) -> Sequence[Part]:
        """What a notebook and `print` show."""
        return list(parts_of(self))

    def _shown_line(self) -> str:
        """The same in one line."""
        return line_of(self)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        seed: int = self.spec["seed"]
        return seed

    @property
    def domain_names(self) -> list[str]:
        """The names of the domains, in the order of the stream."""
        return [domain["name"] for domain in self.scenario["domains"]]

    @property
    def test_counts(self) -> list[int]:
        """The number of test images of each domain."""
        return [int(domain["test"]) for domain in self.scenario["domains"]]

    @property
    def third_party(self) -> bool:
        """Whether a plugin outside this package offers the method; older records do not say."""
        plugin = self.method.get("plugin")
        name = plugin.get("name", "") if isinstance(plugin, dict) else str(plugin or "")
        return bool(name) and name.split(" ")[0] != "fsdil-bench"

    @property
    def exemplar_free(self) -> bool:
        """Whether the method keeps no old images."""
        return bool(self.method["exemplar_free"])

    def to_json(self) -> str:
        """The content of `record.json`."""
        return json.dumps(self._values(), indent=1, sort_keys=True, allow_nan=False) + "\n"

    def hashed(self) -> Record:
        """This record with the hash of its content."""
        return dataclasses.replace(self, content_sha256=content_hash(self._values()))

    def _values(self) -> dict[str, Any]:
        """The fields that are in the file."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del values["folder"]
        return {
            name: value
            for name, value in values.items()
            if name not in _LEFT_OUT_AT or value != _LEFT_OUT_AT[name]
        }

    @classmethod
    def load(cls, folder: Path) -> Record:
        """Read the record of a run folder, with scores that were computed from its predictions.

        A record that is damaged, has another form or says other scores is refused.
        """
        return _load(Path(folder))[0]

    def predictions(self) -> dict[str, np.ndarray]:
        """Per-sample results: `labels` and `domains` of all test images, and for every step t
        `classes_<t>` (and `routed_<t>`, `oracle_<t>` for routers) over the images seen by then.
        Test sets of no domain have `unseen_labels`, `unseen_sets`, `unseen_classes_<t>` and
        `unseen_routed_<t>` in the same way. `groups` is there where test images come in groups."""
        if self.folder is None:
            raise RecordError("this record has no folder to read predictions from")
        return {name: array.copy() for name, array in _sound_predictions(self).items()}

    def groups(self) -> np.ndarray | None:
        """The group of every test image (a video, say); None where each is a group of its own."""
        return self.predictions().get("groups")


def find_records(
    *roots: str | Path, strict: bool = False, tell: Callable[[str], None] = warnings.warn
) -> list[Record]:
    """All complete runs below the given folders, in a fixed order.

    Scores are computed from the predictions. A record is left out, and `tell` is called with the
    reason (by default as a Python warning), if it is damaged, has the form of another version, says
    other scores than its predictions, has other labels than the rest (`records.labels`), or has a
    copy that predicted differently (`records.copies`). With `strict` that is an error.
    """
    for root in map(Path, roots):
        if not root.exists():
            raise RecordError(f"'{root}' does not exist", "Give a folder that holds runs.")
    loaded = []
    for folder in find_folders(*map(Path, roots)):
        try:
            record, arrays = _load(folder)
        except RecordError as error:
            if strict:
                raise
            tell(f"left out: {error.message}")
            continue
        loaded.append((record, label_hashes(record, arrays)))
    believed = []
    for record, why in without_foreign_labels(loaded):
        if not why:
            believed.append(record)
        elif strict:
            raise RecordError(f"{record.folder}: {why}", "Run it again with --fresh.")
        else:
            tell(f"left out: {record.folder}: {why}")
    records = []
    for copies, why in without_contradictions(believed):
        if not why:
            records += copies
        elif strict:
            raise RecordError(why, "Remove all but one of these folders.")
        else:
            tell(f"left out: {why}")
    return sorted(records, key=lambda r: (r.spec["scenario"], r.spec["method"], r.seed, r.run_id))


def find_folders(*roots: Path) -> list[Path]:
    """All folders with a record below the given ones, damaged or not, in a fixed order."""
    found = {
        Path(folder)
        for root in roots
        for folder, folders, files in os.walk(root)
        if RECORD_FILE in files or RECORD_FILE in folders  # also a link that leads nowhere
    }
    return sorted(found)


def _load(folder: Path) -> tuple[Record, dict[str, np.ndarray]]:
    """The record of a folder with recomputed scores, and its predictions."""
    values = _read(folder / RECORD_FILE)
    if problems := form_problems(values):
        raise RecordError(
            f"{folder / RECORD_FILE} does not have the form of this version: {problems[0]}",
            "Use the version of fsdil-bench that wrote it, or run it again.",
        )
    record = Record(**values, folder=folder)
    arrays = _sound_predictions(record)
    due = recompute(record, arrays)
    if found := list(score_problems(record, due)):
        more = f" (and {len(found) - 1} more differences)" if len(found) > 1 else ""
        raise RecordError(
            f"{folder / RECORD_FILE} does not match its predictions: {found[0]}{more}",
            "One of the two was changed. Run it again with --fresh.",
        )
    return dataclasses.replace(record, **due), arrays


def _sound_predictions(record: Record) -> dict[str, np.ndarray]:
    """The predictions of a record; an error that names the file if they do not fit."""
    assert record.folder is not None
    found = read_predictions(record)
    problems = list(found.problems)
    if found.digest and found.digest != record.predictions_sha256:
        problems = [f"{PREDICTIONS_FILE} does not match its record"]
    problems = problems or list(truth_problems(record, found.arrays))
    if problems:
        raise RecordError(
            f"{record.folder}/{problems[0]}",
            "Restore the file, or run it again with --fresh.",
        )
    return found.arrays


def _read(path: Path) -> dict[str, Any]:
    """The fields of a file of this version that was not changed after it was written."""
    try:
        values = read_json(path, MAX_BYTES)
    except FileNotFoundError:
        raise RecordError(
            f"{path.parent} holds no complete run", "Run the same command again to finish it."
        ) from None
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(
            f"{path} cannot be read: {reason}", "Run it again with --fresh."
        ) from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        found = values.get("schema") if isinstance(values, dict) else None
        raise RecordError(
            f"{path} has schema {str(found)[:20]}, this version reads {SCHEMA}",
            "Use the version of fsdil-bench that wrote it, or run it again.",
        )
    if "content_sha256" in values and values["content_sha256"] != content_hash(values):
        raise RecordError(
            f"{path} was changed after it was written: its content hash does not match",
            "Restore the file, or run it again with --fresh.",
        )
    return values


def content_hash(values: Mapping[str, Any]) -> str:
    """The hash of a record's fields, without `content_sha256` itself, as canonical JSON."""
    plain = json.loads(json.dumps(values))  # keys become strings, as they are in the file
    plain.pop("content_sha256", None)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
