"""Is a record consistent? Checks that need nothing but its folder.

The form is checked against `record.schema.json`, the content against its hash, the run id against
the fields that it is a hash of, and every accuracy against the predictions. Files may come from
anybody: sizes are bounded, and nothing is unpickled.

This catches accidents and naive edits. It does not prove honesty: whoever invents predictions can
invent a record that matches them. To run it again is the proof (`fsdil_bench.runs.rerun`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fsdil_bench.data.scenario import ScenarioId

from .files import read_json
from .form import form_problems
from .identity import RunSpec, run_id
from .predictions import PREDICTIONS_FILE, read_predictions
from .recompute import recompute, score_problems, truth_problems
from .record import MAX_BYTES, RECORD_FILE, Record, content_hash

NO_HASH = "no content hash"


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
        values = read_json(folder / RECORD_FILE, MAX_BYTES)
    except (OSError, ValueError) as error:
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


def _inner_problems(record: Record) -> Iterator[str]:
    """Do the fields agree with each other?"""
    spec, domains = record.spec, record.scenario["domains"]
    shots = ScenarioId.parse(spec["scenario"]).shots
    for t, domain in enumerate(domains[1:], 1):
        if domain["train"] != (due := shots * len(record.scenario["classes"])):
            yield f"scenario.domains[{t}].train is {domain['train']}, but {shots} shots are {due}"
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
    found = read_predictions(record)
    problems = []
    if found.digest and found.digest != record.predictions_sha256:
        problems.append(f"predictions_sha256 does not match: {PREDICTIONS_FILE} is another file")
    if found.problems:
        return [*problems, *found.problems]
    if wrong := list(truth_problems(record, found.arrays)):
        return problems + wrong
    # Outcomes are kept by hash: those of another file must not stand for this record's.
    read = replace(record, predictions_sha256=found.digest)
    return problems + list(score_problems(record, recompute(read, found.arrays)))
