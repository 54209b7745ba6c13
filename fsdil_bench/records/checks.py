"""Is a record consistent? Checks that need nothing but its folder.

The form is checked against `record.schema.json`, the content against its hash, the run id against
the fields that it is a hash of, and every accuracy against the predictions. Files may come from
anybody: sizes are bounded, and nothing is unpickled.

This catches accidents and naive edits. It does not prove honesty: whoever invents predictions can
invent a record that matches them. To run it again is the proof (`fsdil_bench.runs.rerun`).
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.data.scenario import ScenarioId

from .form import form_problems
from .identity import RunSpec, run_id
from .metrics import accuracy_row, scores
from .record import PREDICTIONS_FILE, RECORD_FILE, Record, content_hash, file_sha256

NO_HASH = "no content hash"

_MAX_RECORD = 16 << 20  # bytes of a record.json; usual ones have some ten thousand
_MAX_ARRAYS = 512 << 20  # bytes of unpacked predictions; DomainNet's are about ten million
_EXACT = 1e-6  # percentage points: room for another order of summation, not for another result
_UNREADABLE = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Checked:
    """What was found in a run folder; `record` is None where it cannot be read."""

    folder: Path
    record: Record | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


def check_folder(folder: Path) -> Checked:
    """Check the record and the predictions of a run folder."""
    try:
        values = _read_json(folder / RECORD_FILE)
    except (OSError, ValueError, RecursionError) as error:
        return Checked(folder, None, (f"{RECORD_FILE} cannot be read: {error}",))
    if problems := form_problems(values):
        return Checked(folder, None, tuple(problems))
    record = Record(**values, folder=folder)
    notes = []
    if record.content_sha256 is None:
        notes.append(NO_HASH)
    elif record.content_sha256 != content_hash(values):
        problems.append("content_sha256 does not match: the record was changed after writing")
    problems += _inner_problems(record)
    problems += _prediction_problems(record)
    if record.provenance.get("commit", {}).get("dirty"):
        notes.append("made with uncommitted changes in the source tree")
    return Checked(folder, record, tuple(problems), tuple(notes))


def _read_json(path: Path) -> Any:
    if path.stat().st_size > _MAX_RECORD:
        raise ValueError(f"larger than {_MAX_RECORD >> 20} MB")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON knows")


def _inner_problems(record: Record) -> Iterator[str]:
    """Do the fields agree with each other?"""
    spec, domains = record.spec, record.scenario["domains"]
    shots = ScenarioId.parse(spec["scenario"]).shots
    if spec["order"] != record.domain_names:
        yield "spec.order does not name the domains of scenario.domains"
    for t, domain in enumerate(domains[1:], 1):
        if domain["train"] != (due := shots * len(record.scenario["classes"])):
            yield f"scenario.domains[{t}].train is {domain['train']}, but {shots} shots are {due}"
    unseen = [each["name"] for each in record.scenario.get("unseen", ())]
    if unseen != (record.unseen["names"] if record.unseen else []):
        yield "unseen.names does not name the test sets of scenario.unseen"
    for name in ("state_bytes", "trained_parameters", "per_domain"):
        if len(record.cost[name]) != len(domains):
            yield f"cost.{name} has {len(record.cost[name])} entries for {len(domains)} domains"
    try:
        due_id = run_id(
            RunSpec(**spec),
            stream=record.scenario["digest"],
            weights=record.method["weights"],
            code=record.method["code"],
            protocol=record.protocol,
        )
    except TypeError:
        yield "spec has fields that this version of fsdil-bench does not know"
        return
    if record.run_id != due_id:
        yield (
            f"run_id is {record.run_id}, but spec, samples, weights and code of this record "
            f"make {due_id}: one of them was changed"
        )


def _prediction_problems(record: Record) -> list[str]:
    """Do accuracies, scores and routing follow from the predictions?"""
    assert record.folder is not None
    path = record.folder / PREDICTIONS_FILE
    if not path.is_file():
        return [f"{PREDICTIONS_FILE} is missing"]
    problems = []
    if file_sha256(path) != record.predictions_sha256:
        problems.append(f"predictions_sha256 does not match: {PREDICTIONS_FILE} is another file")
    try:
        arrays = read_arrays(path)
    except _UNREADABLE as error:
        return [*problems, f"{PREDICTIONS_FILE} cannot be read: {error}"]
    if faults := _array_problems(record, arrays):
        return problems + faults
    return problems + list(_result_problems(record, arrays))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file of predictions, whoever wrote it: bounded in size, never unpickled."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_ARRAYS:
            raise ValueError(f"unpacks to {size:,} bytes, more than any predictions need")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _array_problems(record: Record, arrays: dict[str, np.ndarray]) -> list[str]:
    """Names, types, lengths and ranges of the predictions."""
    problems = []
    due = {name: (length, limit) for name, length, limit in _due_arrays(record)}
    if "groups" in arrays:  # only where test images come in groups
        due["groups"] = (sum(record.test_counts), sum(record.test_counts))
    if absent := sorted(set(due) - set(arrays)):
        problems.append(f"{PREDICTIONS_FILE} lacks {', '.join(absent)}")
    if others := sorted(set(arrays) - set(due)):
        problems.append(f"{PREDICTIONS_FILE} holds unknown {', '.join(others)}")
    for name in sorted(set(due) & set(arrays)):
        length, limit = due[name]
        array = arrays[name]
        if array.dtype.kind != "i" or array.shape != (length,):
            problems.append(
                f"{name} in {PREDICTIONS_FILE} is {array.dtype} of shape {array.shape}, "
                f"not {length} integers"
            )
        elif length and not 0 <= array.min() <= array.max() < limit:
            problems.append(f"{name} in {PREDICTIONS_FILE} holds ids outside 0 to {limit - 1}")
    return problems


def _due_arrays(record: Record) -> Iterator[tuple[str, int, int]]:
    """Name, length and number of ids of every array that belongs to a record."""
    classes = len(record.scenario["classes"])
    tests = record.test_counts
    yield "labels", sum(tests), classes
    yield "domains", sum(tests), len(tests)
    for t in range(len(tests)):
        seen = sum(tests[: t + 1])
        yield f"classes_{t}", seen, classes
        if record.routing is not None:
            yield f"routed_{t}", seen, t + 1
            yield f"oracle_{t}", seen, classes
    if sizes := [each["test"] for each in record.scenario.get("unseen", ())]:
        yield "unseen_labels", sum(sizes), classes
        yield "unseen_sets", sum(sizes), len(sizes)
        for t in range(len(tests)):
            yield f"unseen_classes_{t}", sum(sizes), classes
            if record.routing is not None:
                yield f"unseen_routed_{t}", sum(sizes), t + 1


def _result_problems(record: Record, arrays: dict[str, np.ndarray]) -> Iterator[str]:
    """Compare the results in the record with those computed from its predictions."""
    tests = record.test_counts
    labels, domains = arrays["labels"], arrays["domains"]
    if not np.array_equal(domains, np.repeat(np.arange(len(tests)), tests)):
        yield f"domains in {PREDICTIONS_FILE} do not match the counts of scenario.domains"
        return

    def rows(kind: str) -> list[list[float]]:
        found = []
        for t in range(len(tests)):
            predicted = arrays[f"{kind}_{t}"]
            seen = len(predicted)
            found.append(accuracy_row(predicted == labels[:seen], domains[:seen], t + 1))
        return found

    matrix = rows("classes")
    yield from _compare("matrix", record.matrix, matrix)
    yield from _compare("metrics", record.metrics, scores(matrix, tests))
    if record.routing is None:
        for name in ("oracle_matrix", "oracle_metrics"):
            if getattr(record, name) is not None:
                yield f"{name} is there, but routing is not"
    else:
        oracle = rows("oracle")
        yield from _compare("oracle_matrix", record.oracle_matrix, oracle)
        yield from _compare("oracle_metrics", record.oracle_metrics, scores(oracle, tests))
        routed = [arrays[f"routed_{t}"] for t in range(len(tests))]
        right = [100.0 * float((each == domains[: len(each)]).mean()) for each in routed]
        yield from _compare("routing", record.routing, right)
    if record.unseen and "unseen_sets" in arrays:
        sets = arrays["unseen_sets"]
        count = len(record.scenario["unseen"])
        if not np.array_equal(np.unique(sets), np.arange(count)):
            yield f"unseen_sets in {PREDICTIONS_FILE} do not match scenario.unseen"
            return
        hits = [arrays[f"unseen_classes_{t}"] == arrays["unseen_labels"] for t in range(len(tests))]
        due = [accuracy_row(hit, sets, count) for hit in hits]
        yield from _compare("unseen.matrix", record.unseen["matrix"], due)


def _compare(place: str, said: Any, due: Any) -> Iterator[str]:
    """Differences between two nested structures of numbers, each with its place in the record."""
    if isinstance(due, dict):
        for key, value in due.items():
            yield from _compare(f"{place}.{key}", said[key] if said else None, value)
    elif isinstance(due, Sequence):
        if said is None or len(said) != len(due):
            count = "nothing" if said is None else len(said)
            yield f"{place} has {count} instead of {len(due)} entries"
            return
        for i, value in enumerate(due):
            yield from _compare(f"{place}[{i}]", said[i], value)
    elif (said is None) != (due is None) or (due is not None and abs(said - due) > _EXACT):
        yield f"{place} is {said}, but the predictions say {due}"
