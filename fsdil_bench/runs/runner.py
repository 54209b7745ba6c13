"""One run from request to record: the Python face of `fsdil-bench run`.

import fsdil_bench
record = fsdil_bench.run("ncm", "drawn-1shot")
print(record.metrics)
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId, Stream
from fsdil_bench.errors import FsdilError, HeldError, RequestError
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.identity import PROTOCOL
from fsdil_bench.records.record import Record, file_sha256

from .base_reuse import base_origin, keep_base, take_base
from .job import SEALED_SUFFIX, Job, check_arguments, identify, prepare
from .run_folder import RunFolder

if TYPE_CHECKING:
    from fsdil_bench.data.transforms import Transform

    from .executor import Executor
    from .loop import Outcome
    from .pictures import Pictures

_SAME, _OTHER = "same predictions", "other predictions"
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


def run(
    method: str,
    scenario: str,
    *,
    out: str | Path = "runs",
    fresh: bool = False,
    keep_checkpoints: bool = False,
    reuse_base: bool = False,
    sealed: bool = False,
    planned: str | Path | None = None,
    plugins: Sequence[str | Path] = (),
    registry: Registry | None = None,
    progress: Progress | None = None,
    **request: Any,
) -> Record:
    """Run a method on a scenario and return its record.

    `request` are the arguments of `prepare`: seed, backbone, config, data and so on. A run that is
    complete under `out` is not run again, a half-finished one goes on behind its last finished
    domain; `fresh` starts over. `reuse_base` takes over the base domain of a run that differs in
    the number of shots alone, and leaves this run's for others. `sealed` lets the method learn and
    predict in processes that share nothing but its state (`runs.sealed`); the result has the
    same id, and a folder of its own. `planned` is the folder that the run is expected to have:
    where code, weights or data make it another run, nothing is computed.
    """
    check_arguments(request, run, prepare, identify)
    progress = progress or Progress()
    job = prepare(method, scenario, registry=registry or load_registry(plugins), **request)
    job = replace(job, sealed=sealed)
    folder = RunFolder(Path(out) / job.place)
    if planned is not None and folder.path.resolve() != Path(planned).resolve():
        raise RequestError(
            f"the run is {folder.path} here, but {planned} where it was planned",
            "Use the same version of fsdil-bench, of the plugins and of the data on all machines.",
        )
    if folder.complete and not fresh:
        return _already_done(folder, progress)
    with _kept_in_log(folder), folder.locked():
        if folder.complete and not fresh:  # by the process that had the lock until now
            return _already_done(folder, progress)
        folder.begin(job.spec.to_dict(), fresh=fresh)
        if reuse_base:
            take_base(job, folder)
        record = _carry_out(job, folder, progress, keep_checkpoints, reuse_base)
    if record.provenance.get("ordinary_run") == _OTHER:
        progress.say(
            "warning: the ordinary run of this id gave other predictions: the method depends on "
            "more than its state and the single image"
        )
    for failure in job.registry.notify_finished(record):
        progress.say(f"warning: {failure}")
    return record


def _already_done(folder: RunFolder, progress: Progress) -> Record:
    progress.say(f"already done: {folder.path} (--fresh runs it again)")
    return Record.load(folder.path)


@contextmanager
def _kept_in_log(folder: RunFolder) -> Iterator[None]:
    """Write the traceback of a failure into the run's log; name a folder that takes no more."""
    try:
        yield
    except HeldError:  # the log belongs to the process that has the run, which may go well
        raise
    except BaseException as error:
        with suppress(OSError):  # the log is a convenience; the error itself is what matters
            folder.log(traceback.format_exc())
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            raise FsdilError(
                f"{folder.path} cannot be written: {error.strerror}",
                "Make room or choose another folder with --out; finished domains are kept.",
            ) from error
        raise


def _carry_out(
    job: Job, folder: RunFolder, progress: Progress, keep_checkpoints: bool, reuse_base: bool
) -> Record:
    """Build the method, go through the protocol, write the record."""
    from fsdil_bench.models.device import numerics

    from .cost import reset_peak_memory
    from .loop import Loop

    job.backbone.say = progress.say
    reset_peak_memory(job.backbone.device)
    pictures = job.pictures(progress)
    numbers = numerics(job.spec.precision, deterministic=job.deterministic)
    with numbers, _executor(job, pictures, folder, progress) as executor:
        outcome = Loop(
            name=job.spec.method,
            executor=executor,
            stream=job.stream,
            pictures=pictures,
            seed=job.spec.seed,
            exemplar_free=job.info.exemplar_free,
            folder=folder,
            progress=progress,
            keep_checkpoints=keep_checkpoints,
            after_base=partial(keep_base, job, folder) if reuse_base else None,
            shots=ScenarioId.parse(job.spec.scenario).shots,
        ).run()
    pictures.close()
    record = _record(job, outcome, pictures.transform, folder)
    folder.finish(record)
    return record


def _executor(
    job: Job, pictures: Pictures, folder: RunFolder, progress: Progress
) -> AbstractContextManager[Executor]:
    """Where the method does its work: in this process, or in others if the run is sealed."""
    if job.sealed:
        from .sealed.executor import SealedExecutor

        return SealedExecutor(job, pictures, folder, progress)
    from .executor import InProcess

    name, device = job.spec.method, job.backbone.device
    return nullcontext(InProcess(name, job.build_method, job.spec.seed, device))


def _record(job: Job, outcome: Outcome, transform: Transform, folder: RunFolder) -> Record:
    import numpy as np

    from fsdil_bench.models.device import repeatable
    from fsdil_bench.records.metrics import scores

    from .audit import audit_state
    from .cost import peak_memory_bytes, total
    from .provenance import provenance

    domains = job.stream.domains
    tests = [len(domain.test) for domain in domains]
    predictions = outcome.predictions | {
        "labels": np.concatenate([domain.test.labels for domain in domains]).astype(np.int32),
        "domains": np.repeat(np.arange(len(tests)), tests).astype(np.int16),
    }
    unseen = job.stream.unseen
    if unseen:
        sizes = [len(samples) for _, samples in unseen]
        labels = np.concatenate([samples.labels for _, samples in unseen])
        predictions["unseen_labels"] = labels.astype(np.int32)
        predictions["unseen_sets"] = np.repeat(np.arange(len(sizes)), sizes).astype(np.int16)
    digest = file_sha256(folder.save_predictions(predictions))
    return Record(
        run_id=job.run_id,
        protocol=PROTOCOL,
        spec=job.spec.to_dict(),
        scenario={
            "digest": job.stream.digest(),
            "classes": list(job.stream.class_names),
            "transform": transform.describe(),
            "domains": [
                {
                    "name": domain.name,
                    "train": len(domain.train),
                    "train_sha256": domain.train.digest(),
                    "test": len(domain.test),
                    "test_sha256": domain.test.digest(),
                }
                for domain in domains
            ],
            **_unseen_sets(job.stream),
            **job.stream.notes,
        },
        method={
            "summary": job.info.summary,
            "paper": job.info.paper,
            "exemplar_free": job.info.exemplar_free,
            "keeps_features": job.info.keeps_features,
            "code": job.code,
            "weights": job.backbone.weights_hash,
        }
        | ({"backbone": job.backbone.notes} if job.backbone.notes else {}),
        matrix=outcome.matrix,
        metrics=scores(outcome.matrix, tests),
        oracle_matrix=outcome.oracle_matrix or None,
        oracle_metrics=scores(outcome.oracle_matrix, tests) if outcome.oracle_matrix else None,
        routing=outcome.routing or None,
        unseen={"names": [name for name, _ in unseen], "matrix": outcome.unseen_matrix}
        if unseen
        else None,
        served=[each for each in outcome.served if each] if all(outcome.served) else None,
        audit=audit_state(
            outcome.state_bytes,
            [len(domain.train) for domain in domains],
            transform.spec.size,
            job.backbone.embed_dim,
        )
        if job.info.exemplar_free
        else None,
        sealed=job.sealed,
        warnings=outcome.warnings or None,
        cost=total(outcome.costs)
        | {
            "per_domain": outcome.costs,
            "peak_memory_bytes": max(
                outcome.peak_memory_bytes, peak_memory_bytes(job.backbone.device)
            ),
            "state_bytes": outcome.state_bytes,
            "trained_parameters": outcome.trained_parameters,
        },
        diagnostics={"per_domain": outcome.diagnostics} if any(outcome.diagnostics) else {},
        provenance=provenance(
            job.backbone.device, {plugin.source: plugin.version for plugin in job.registry.plugins}
        )
        | {
            "batch_size": job.backbone.batch_size,
            "deterministic": job.deterministic,
            "repeatable": repeatable(job.backbone.device, job.deterministic),
        }
        | {"resumed_after": outcome.resumed_after}
        | ({"base_from": origin} if (origin := base_origin(folder)) else {})
        | _beside_ordinary(job, folder, digest),
        predictions_sha256=digest,
        folder=folder.path,
    ).hashed()


def _beside_ordinary(job: Job, folder: RunFolder, digest: str) -> dict[str, str]:
    """Whether a sealed run predicts as the ordinary one of the same id, if that is there."""
    other = folder.path.with_name(folder.path.name.removesuffix(SEALED_SUFFIX))
    if not job.sealed or not RunFolder(other).complete:
        return {}
    return {"ordinary_run": _SAME if Record.load(other).predictions_sha256 == digest else _OTHER}


def _unseen_sets(stream: Stream) -> dict[str, Any]:
    """The test sets of no domain, for the record of a stream that has such."""
    described = [
        {"name": name, "test": len(samples), "test_sha256": samples.digest()}
        for name, samples in stream.unseen
    ]
    return {"unseen": described} if described else {}
