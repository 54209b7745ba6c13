"""Running a record's spec again: does the same come out?

A run id fixes everything that decides a result but the last bits of floating-point numbers, which
depend on the number of threads, the batch size, the version of torch and the processor; training
can amplify them. The record says how many threads and which batch size it was made with, and they
are used again; what else differs is reported. Where the bits are the same again, all predictions
must be; elsewhere a few may differ although nothing is wrong (`allowed`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.checks import read_arrays
from fsdil_bench.records.metrics import unseen_accuracy
from fsdil_bench.records.record import PREDICTIONS_FILE, Record

if TYPE_CHECKING:
    from fsdil_bench.data.scenario import Samples

    from .job import Job

_TRUTH = ("labels", "domains", "unseen_labels", "unseen_sets")
_SURROUNDINGS = (
    "python", "platform", "processor", "device", "gpu", "threads", "batch_size", "deterministic",
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What may differ: scores by so many percentage points, so many percent of the predictions."""

    points: float
    percent: float


#: The same bits are to be expected: nothing may differ.
EXACT = Allowed(0.0, 0.0)
#: Other last bits are to be expected. This is a convention, not a bound.
LAST_BITS = Allowed(0.2, 2.0)
#: The same in bf16, which has a third of the digits.
LAST_BITS_OF_BF16 = Allowed(0.5, 5.0)


class Outcome(StrEnum):
    """What came of running a record again."""

    IDENTICAL = "identical"
    CLOSE = "same accuracy"
    DIFFERS = "differs"
    NOT_RUN = "not run again"


@dataclass(frozen=True)
class Verified:
    """An outcome and why. `largest` is the largest difference of any score, in points;
    `surroundings` are the differences of the two places that could explain others."""

    outcome: Outcome
    reason: str
    differing: int = 0
    predictions: int = 0
    largest: float | None = None
    surroundings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def verify(
    record: Record,
    *,
    registry: Registry,
    out: Path,
    tolerance: float | None = None,
    anyway: bool = False,
    sealed: bool = False,
    progress: Progress | None = None,
    **request: Any,
) -> Verified:
    """Run a record's spec again below `out` and compare.

    A run that would have another id here (because code, weights or samples are others) is not
    started unless `anyway`; what an interrupted verification left below `out` is gone on with.
    A sealed run is run again sealed. `tolerance` are the points by which scores may differ, instead
    of what is `allowed`. `request` completes what a record does not hold: `data`,
    `names`, `synonyms`, `backbone` where the weights are a file, `device`, `batch_size`, `workers`.
    """
    from .job import prepare
    from .runner import run

    assert record.folder is not None
    if record.folder.resolve().is_relative_to(out.resolve()):
        raise RequestError(
            f"{out} holds the records that are to be run again", "Choose another folder with --out."
        )
    asked = asked_for(record) | {key: value for key, value in request.items() if value}
    try:
        with _threads(record):
            job = prepare(**asked, registry=registry)
            others = identity_differences(record, job)
            if others and not anyway:
                return Verified(Outcome.NOT_RUN, "; ".join(others))
            sealed = sealed or record.sealed
            again = run(**asked, registry=registry, out=out, sealed=sealed, progress=progress)
    except FsdilError as error:
        return Verified(Outcome.NOT_RUN, " ".join(error.message.split()))
    found = compare(record, again, tolerance)
    if not others:
        return found
    return Verified(**(asdict(found) | {"reason": f"{found.reason}, although {'; '.join(others)}"}))


def asked_for(record: Record) -> dict[str, Any]:
    """The request behind a record, as arguments of `fsdil_bench.run`."""
    spec, made = record.spec, record.provenance
    return {
        "method": spec["method"],
        "scenario": spec["scenario"],
        "seed": spec["seed"],
        "config": spec["config"],
        "backbone": spec["backbone"],
        "precision": spec["precision"],
        "order": spec["order"],
        "base_limit": spec["base_limit"],
        "scenario_options": spec["scenario_options"],
        "transform": record.scenario["transform"]["preset"],
        "device": _same_device(made["device"]),
        "batch_size": made.get("batch_size"),
        "deterministic": made.get("deterministic", False),
    }


def _same_device(name: str) -> str:
    """The record's device, if this machine has such."""
    from fsdil_bench.models.device import choose

    try:
        choose(name, "fp32")
    except RequestError:
        return "auto"
    return name


# --- before the run ---


def identity_differences(record: Record, job: Job) -> list[str]:
    """Why the run would not have the record's id here; nothing if it would."""
    if job.run_id == record.run_id:
        return []
    found = [
        f"the code of the {part} is another: {record.method['code'].get(part)} in the record, "
        f"{digest} here"
        for part, digest in job.code.items()
        if record.method["code"].get(part) != digest
    ]
    if (weights := job.backbone.weights_hash) != (said := record.method["weights"]):
        found.append(f"the weights are others: {said[:16]} in the record, {weights[:16]} here")
    found += _sample_differences(record, job)
    found += _spec_differences(record.spec, job.spec.to_dict())
    return found or ["the run has another id here: the protocol of the harness is another"]


def _sample_differences(record: Record, job: Job) -> Iterator[str]:
    if job.stream.digest() == record.scenario["digest"]:
        return
    parts = []
    for said, domain in zip(record.scenario["domains"], job.stream.domains, strict=False):
        samples: dict[str, Samples] = {"train": domain.train, "test": domain.test}
        parts += [
            f"{part} images of {domain.name}"
            for part, each in samples.items()
            if each.digest() != said[f"{part}_sha256"]
        ]
    if list(job.stream.class_names) != record.scenario["classes"]:
        parts.append("class names")
    yield f"the samples are others: {', '.join(parts) or 'synonyms or unseen test sets'}"


def _spec_differences(said: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(said) | set(here)):
        old, new = said.get(key), here.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            names = [name for name in sorted(set(old) | set(new)) if old.get(name) != new.get(name)]
            yield f"{key} differs in {', '.join(names) or 'options without a value'}"
        else:
            yield f"{key} is {old!r} in the record, {new!r} here"


@contextmanager
def _threads(record: Record) -> Iterator[None]:
    """Compute with as many threads as the record was made with."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(record.provenance.get("threads", before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


# --- after the run ---


def allowed(said: Mapping[str, Any], here: Mapping[str, Any], precision: str) -> Allowed:
    """What may differ between two places, by their provenance: nothing where bits are stable.

    They are on one kind of CPU, with as many threads, and on one kind of GPU if both runs were
    deterministic; with the same batch size, packages and commit.
    """
    same = ["device", "batch_size", "packages", "commit"]
    if here["device"] == "cpu":
        same += ["processor", "threads"]
    else:
        same += ["gpu", "deterministic"]
    stable = here["device"] == "cpu" or here.get("deterministic", False)
    if stable and all(name in said and said[name] == here.get(name) for name in same):
        return EXACT
    return LAST_BITS_OF_BF16 if precision == "bf16" else LAST_BITS


def compare(record: Record, again: Record, tolerance: float | None = None) -> Verified:
    """Compare a record with another one of the same run."""
    assert record.folder is not None
    old = read_arrays(record.folder / PREDICTIONS_FILE)
    new = again.predictions()
    places = tuple(surroundings(record.provenance, again.provenance))
    if set(old) != set(new) or any(
        not np.array_equal(old[name], new[name]) for name in _TRUTH if name in old
    ):
        return Verified(Outcome.DIFFERS, "the test images are others", surroundings=places)
    names = [name for name in old if name not in _TRUTH]
    total = sum(len(old[name]) for name in names)
    differing = sum(int((old[name] != new[name]).sum()) for name in names)
    if not differing:
        return Verified(Outcome.IDENTICAL, f"{total:,} predictions", 0, total, 0.0, places)
    largest = largest_difference(record, again)
    reason = f"{differing:,} of {total:,} predictions differ, scores by up to {largest:.3f} points"
    may = allowed(record.provenance, again.provenance, record.spec["precision"])
    if tolerance is not None:
        close = largest <= tolerance
    else:
        close = largest <= may.points and 100 * differing <= may.percent * total
        reason += (
            "; none should here"
            if may == EXACT
            else f" (allowed: {may.percent:g} %, {may.points:g} points)"
        )
    outcome = Outcome.CLOSE if close else Outcome.DIFFERS
    return Verified(outcome, reason, differing, total, largest, places)


def largest_difference(one: Record, other: Record) -> float:
    """The largest difference of any score of two records, in percentage points."""
    return max(
        abs(old - new)
        for old, new in zip(_scores(one), _scores(other), strict=True)
        if old is not None and new is not None
    )


def _scores(record: Record) -> Sequence[float | None]:
    oracle = record.oracle_metrics or {}
    names = sorted(record.metrics)
    return [
        *(record.metrics[name] for name in names),
        *(oracle.get(name) for name in names),
        unseen_accuracy(record.unseen),
    ]


def surroundings(said: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """What is different about two places that could change last bits, or the harness itself."""
    for name in _SURROUNDINGS:
        if name in said and said[name] != here.get(name):  # older records say less
            yield f"{name}: {said.get(name)} in the record, {here.get(name)} here"
    packages = said.get("packages", {}), here.get("packages", {})
    for name in sorted(set(packages[0]) | set(packages[1])):
        old, new = (each.get(name) for each in packages)
        if old != new:
            yield f"{name}: {old} in the record, {new} here"
    commits = [each.get("commit", {}).get("sha", "")[:12] for each in (said, here)]
    if commits[0] != commits[1]:
        yield f"commit: {commits[0] or 'none'} in the record, {commits[1] or 'none'} here"
