"""Running a record's spec again: is the result the same?

A run id determines everything that decides a result except the last bits of floating-point numbers.
The record says how many threads and which batch size it was made with, and they are used again;
what else differs is reported (`agreement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.record import Record

from .request import RunRequest
from .rerun_agreement import Verdict, Verified, compare

if TYPE_CHECKING:
    from fsdil_bench.data.scenario import Samples

    from .job import Job


def verify(
    record: Record,
    *,
    registry: Registry,
    out: Path,
    tolerance: float | None = None,
    anyway: bool = False,
    sealed: bool = False,
    progress: Progress | None = None,
    **completed: Any,
) -> Verified:
    """Run a record's spec again below `out` and compare.

    A run that would have a different id here (because code, weights or samples have changed) is not
    started unless `anyway`; an interrupted verification below `out` resumes. A sealed run is run
    again sealed. `tolerance` are the points by which scores may differ, instead of what is
    `allowed`. `completed` are the options that a record does not hold, see `request_of`.
    """
    from fsdil_bench.data.streams import UnusedError

    from .job import prepare
    from .runner import run_job

    assert record.folder is not None
    if record.folder.resolve().is_relative_to(out.resolve()):
        raise RequestError(
            f"{out} holds the records that are to be run again", "Choose another folder with --out."
        )
    try:
        request = replace(request_of(record, completed), sealed=sealed or record.sealed)
        with _threads(record):
            try:
                job = prepare(request, registry)
            except UnusedError as unused:  # the option is for the records that need it
                without: dict[str, Any] = dict.fromkeys(unused.fields)
                job = prepare(replace(request, **without), registry)
            differences = identity_differences(record, job)
            if differences and not anyway:
                return Verified(Verdict.NOT_RUN, "; ".join(differences))
            # The same mixture of test images: only then are the same bits expected.
            job = replace(job, order_salt=record.provenance.get("order_salt", ""))
            again = run_job(job, out, progress=progress)
    except FsdilError as error:
        return Verified(Verdict.NOT_RUN, " ".join(error.message.split()))
    found = compare(record, again, tolerance)
    if not differences:
        return found
    reason = f"{found.reason}, although {'; '.join(differences)}"
    return Verified(**(asdict(found) | {"reason": reason}))


def request_of(record: Record, completed: Mapping[str, Any]) -> RunRequest:
    """The request that asks for a record's run again.

    `completed` are options that a record does not hold, or that differ here: `data`, `names`,
    `synonyms`, `backbone` where the weights are a file, `device`, `batch_size`, `workers`.
    """
    made = record.provenance
    known = {
        **record.spec,
        "transform": record.scenario["transform"]["preset"],
        "device": _same_device(made["device"]),
        "batch_size": made.get("batch_size"),
        "compile": made.get("compile", False),
        "deterministic": made.get("deterministic", False),
    }
    return RunRequest.of(**known | {name: value for name, value in completed.items() if value})


def _same_device(name: str) -> str:
    """The record's device, if this machine has such a device."""
    from fsdil_bench.models.device import choose

    try:
        choose(name, "fp32")
    except RequestError:
        return "auto"
    return name


def identity_differences(record: Record, job: Job) -> list[str]:
    """Why the run would not have the record's id here; empty if it would."""
    if job.run_id == record.run_id:
        return []
    found = [
        f"the code of the {part} is different: {record.method['code'].get(part)} in the record, "
        f"{digest} here"
        for part, digest in job.code.items()
        if record.method["code"].get(part) != digest
    ]
    if (weights := job.backbone.weights_hash) != (said := record.method["weights"]):
        found.append(f"the weights are different: {said[:16]} in the record, {weights[:16]} here")
    found += _sample_differences(record, job)
    found += _spec_differences(record.spec, job.spec.to_dict())
    return found or ["the run has a different id here: the protocol of the harness is different"]


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
    yield f"the samples are different: {', '.join(parts) or 'synonyms or unseen test sets'}"


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
