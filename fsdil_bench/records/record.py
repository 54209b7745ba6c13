"""The record of a run: what was asked, what came out, what it cost, and where it was run.

`record.json` is written last and renamed into place, so its presence means the run is complete.
Per-sample predictions lie beside it; the record holds their hash, and one of its own content: an
edit by hand shows. That catches accidents, not intent: who edits can also hash again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.errors import RecordError

SCHEMA = 1
RECORD_FILE = "record.json"
PREDICTIONS_FILE = "predictions.npz"


@dataclass(frozen=True)
class Record:
    """A complete run. Accuracies are percentages; `matrix[t][i]` is A[t, i] for i <= t.

    `unseen` holds, for streams with test sets of no domain, their "names" and a "matrix" with the
    accuracy on each of them after every domain. `served` says for each domain what its views handed
    out (`Ledger.summary`), `audit` what the state of an exemplar-free method could hold
    (`runs.audit`); records of older versions have neither. `sealed` is true where learning
    and predicting were separate processes. `warnings` say what went wrong without ending the run,
    for instance that predicting changed the state. `protocol` is the version of the harness's own
    rules (`records.identity.PROTOCOL`). `content_sha256` is a hash of all other fields
    (`content_hash`); records of older versions have none.
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

    def to_json(self) -> str:
        """The content of `record.json`."""
        return json.dumps(self._values(), indent=1, sort_keys=True, allow_nan=False) + "\n"

    def hashed(self) -> Record:
        """This record with the hash of its content."""
        return dataclasses.replace(self, content_sha256=content_hash(self._values()))

    def _values(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del values["folder"]
        for name in ("unseen", "served", "audit", "sealed", "warnings", "content_sha256"):
            if values[name] is None or values[name] is False:
                del values[name]  # only records that have something to say know these fields
        if values["protocol"] == 1:
            del values["protocol"]  # the first records do not say so
        return values

    @classmethod
    def load(cls, folder: Path) -> Record:
        """Read the record of a run folder."""
        path = Path(folder) / RECORD_FILE
        try:
            return cls(**_read(path), folder=Path(folder))
        except TypeError as error:
            raise RecordError(f"{path} is not a run record: {error}") from None

    def check_predictions(self, path: Path) -> None:
        """Refuse a file of predictions that is not there or is not this run's."""
        if not path.is_file():
            raise RecordError(f"{path} is missing", "Run it again with --fresh.")
        if file_sha256(path) != self.predictions_sha256:
            raise RecordError(f"{path} does not match its record", "One of the two was changed.")

    def predictions(self) -> dict[str, np.ndarray]:
        """Per-sample results: `labels` and `domains` of all test images, and for every step t
        `classes_<t>` (and `routed_<t>`, `oracle_<t>` for routers) over the images seen by then.
        For test sets of no domain likewise `unseen_labels`, `unseen_sets`, `unseen_classes_<t>`
        and `unseen_routed_<t>`."""
        if self.folder is None:
            raise RecordError("this record has no folder to read predictions from")
        path = self.folder / PREDICTIONS_FILE
        self.check_predictions(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


def _read(path: Path) -> dict[str, Any]:
    """The fields in a file of this version that is as it was written."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(
            f"{path.parent} holds no complete run", "Run the same command again to finish it."
        ) from None
    except (ValueError, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}", "Run it again with --fresh.") from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        found = values.get("schema") if isinstance(values, dict) else None
        raise RecordError(
            f"{path} has schema {found}, this version reads {SCHEMA}",
            "Use the version of fsdil-bench that wrote it, or run it again.",
        )
    if "content_sha256" in values and values["content_sha256"] != content_hash(values):
        raise RecordError(
            f"{path} was changed after it was written: its content hash does not fit",
            "Restore the file, or run it again with --fresh.",
        )
    return values


def content_hash(values: Mapping[str, Any]) -> str:
    """The hash of a record's fields, `content_sha256` itself left out, as canonical JSON."""
    plain = json.loads(json.dumps(values))  # keys as they will be read again
    plain.pop("content_sha256", None)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_records(
    *roots: str | Path, strict: bool = False, tell: Callable[[str], None] = warnings.warn
) -> list[Record]:
    """All complete runs below the given folders, in a fixed order.

    A record that is damaged or has not the form of this version is left out, and `tell` hears which
    and why (by default a warning of Python); with `strict` it is an error.
    """
    folders: set[Path] = set()
    for root in map(Path, roots):
        if not root.exists():
            raise RecordError(f"'{root}' does not exist", "Give a folder that holds runs.")
        folders.update(path.parent for path in root.rglob(RECORD_FILE))
    records = []
    for folder in sorted(folders):
        try:
            records.append(_load_sound(folder))
        except RecordError as error:
            if strict:
                raise
            tell(f"left out: {error.message}")
    return sorted(
        records, key=lambda r: (r.spec["scenario"], r.spec["method"], r.spec["seed"], r.run_id)
    )


def _load_sound(folder: Path) -> Record:
    """The record of a folder, if its form is this version's and its predictions are its own."""
    from .checks import form_problems

    values = _read(folder / RECORD_FILE)
    if problems := form_problems(values):
        raise RecordError(
            f"{folder / RECORD_FILE} has not the form of this version: {problems[0]}",
            "Use the version of fsdil-bench that wrote it, or run it again.",
        )
    record = Record(**values, folder=folder)
    if (predictions := folder / PREDICTIONS_FILE).is_file():  # some publish scores alone
        record.check_predictions(predictions)
    return record
