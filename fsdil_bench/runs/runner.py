"""One run from request to record: the Python face of `fsdil-bench run`.

import fsdil_bench
record = fsdil_bench.run("ncm", "drawn-1shot")
print(record.metrics)
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.stream_request import check_arguments
from fsdil_bench.errors import UNWRITABLE, FsdilError, HeldError, RequestError
from fsdil_bench.plugins.descriptors import MethodInfo
from fsdil_bench.plugins.registry import Registry, imported_here, load_registry
from fsdil_bench.progress import Progress, shown
from fsdil_bench.records.record import Record

from .base_reuse import keep_base, take_base
from .job import Job, prepare
from .make_record import differs_from_ordinary, make_record
from .request import RunRequest
from .run_folder import RunFolder
from .tracking import Tracking, catch_up, tracking

if TYPE_CHECKING:
    from fsdil_bench.plugins.method import Method

    from .executor import Executor
    from .pictures import Pictures


def run(
    method: str | MethodInfo | type[Method],
    scenario: str,
    *,
    out: str | Path = "runs",
    fresh: bool = False,
    planned: str | Path | None = None,
    plugins: Sequence[str | Path] = (),
    registry: Registry | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Record:
    """Run a method on a scenario and return its record.

    A method is a name, or one that no plugin offers: its class, from a script or a cell of a
    notebook, or a `MethodInfo` with the class. Of a class in cells, the run id covers the class and
    all that it uses from other cells.
    `options` are the fields of `RunRequest`: `seed`, `backbone`, `config`, `data` and so on. A run
    that is complete below `out` is not run again, an unfinished one resumes after its last finished
    domain; `fresh` starts over. `reuse_base` takes over the base domain of a run that differs in
    the number of shots alone, and keeps this run's for other runs. `sealed` lets the method learn
    and predict in processes that share nothing but its state (`runs.sealed`); the result has the
    same id, and a folder of its own. `planned` is the folder that the run is expected to have:
    where code, weights or data make it a different run, nothing is computed. `progress` shows how
    far the run is: by default in notebooks only, with True everywhere, with False nowhere. `track`
    names trackers that log the run (`fsdil-bench list trackers`), also one that is complete.
    """
    check_arguments(options, RunRequest, run)
    name = method
    if not isinstance(name, str):
        registry = registry or load_registry(plugins)
        name, registry = registry.offering(name)
    request = RunRequest.of(method=name, scenario=scenario, **options)
    if request.sealed and not isinstance(method, str):
        raise RequestError(
            "a sealed run takes a method by its name: the class is in this process already",
            "Put the method into a file, and give it with `plugins`.",
        )
    registry = registry or load_registry(plugins, () if request.sealed else None)
    with shown(progress, str(request)) as line:
        job = prepare(request, registry)
        return run_job(job, out, fresh=fresh, planned=planned, progress=line)


def run_job(
    job: Job,
    out: str | Path,
    *,
    fresh: bool = False,
    planned: str | Path | None = None,
    progress: Progress | None = None,
) -> Record:
    """Carry out a job, unless its record is there already; see `run`."""
    progress = progress or Progress()
    folder = RunFolder(Path(out) / job.place)
    if planned is not None and folder.path.resolve() != Path(planned).resolve():
        raise RequestError(
            f"the run is {folder.path} here, but {planned} where it was planned",
            "Use the same version of fsdil-bench, of the plugins and of the data on all machines.",
        )
    if folder.complete and not fresh and not job.request.track:
        return _load_complete(job, folder, progress)
    with _failures_logged(folder), folder.locked():
        if folder.complete and not fresh:  # perhaps by the process that had the lock until now
            return _load_complete(job, folder, progress)
        folder.begin(job.spec.to_dict(), fresh=fresh)
        if job.request.reuse_base:
            take_base(job, folder)
        with tracking(job, folder, progress, fresh=fresh) as tracked:
            record = _carry_out(job, folder, progress, tracked)
            tracked.run_finished(record)
    if differs_from_ordinary(record):
        progress.say(
            "warning: the ordinary run of this id made different predictions: the method depends "
            "on more than its state and the single image"
        )
    for sentence in record.provenance.get("suspicions", []):
        progress.say(f"warning: {sentence}")
    if not job.request.sealed:  # a hook could change the record in this process
        for failure in job.registry.notify_finished(record):
            progress.say(f"warning: {failure}")
    return record


def _load_complete(job: Job, folder: RunFolder, progress: Progress) -> Record:
    progress.say(f"already done: {folder.path} (--fresh runs it again)")
    record = Record.load(folder.path)
    if job.request.track:
        catch_up(job, folder, record, progress)
    return record


@contextmanager
def _failures_logged(folder: RunFolder) -> Iterator[None]:
    """Write the traceback of a failure into the run's log; name a folder that cannot be written."""
    try:
        yield
    except HeldError:  # the log belongs to the process that has the run, which may go well
        raise
    except BaseException as error:
        with suppress(OSError):  # the log is a convenience; the error itself is what matters
            folder.log(traceback.format_exc())
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            raise FsdilError(
                f"{folder.path} cannot be written: {error.strerror}",
                "Make room or choose another folder with --out; finished domains are kept.",
            ) from error
        raise


def _carry_out(job: Job, folder: RunFolder, progress: Progress, tracked: Tracking) -> Record:
    """Build the method, go through the protocol, write the record."""
    from fsdil_bench.models.device import numerics

    from .cost import reset_peak_memory
    from .loop import Loop

    job.backbone.say = progress.say
    if job.request.profile:
        from .profiling import ProfiledProgress

        progress = ProfiledProgress(progress, folder.path, job.backbone.device)
    reset_peak_memory(job.backbone.device)
    pictures = job.pictures(progress)
    numbers = numerics(job.spec.precision, deterministic=job.request.deterministic)
    if job.request.sealed:
        _note_strangers(job, folder)
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
            keep_checkpoints=job.request.keep_checkpoints,
            after_base=partial(keep_base, job, folder) if job.request.reuse_base else None,
            after_domain=tracked.domain_finished,
            shots=job.request.scenario.shots,
        ).run()
    pictures.close()
    job.registry.check_harness()
    if job.request.profile:
        from .profiling import write_phases

        names = [domain.name for domain in job.stream.domains]
        progress.say(f"profile: {write_phases(folder.path, names, outcome.costs).parent}")
    record = make_record(job, outcome, pictures.transform, folder)
    folder.finish(record)
    return record


def _note_strangers(job: Job, folder: RunFolder) -> None:
    """Keep which plugins this process has imported, for any purpose, without need."""
    from .sealed.suspicions import suspect
    from .sealed.task import third_parties

    needed = {plugin.key for plugin in third_parties(job).values() if plugin.imported}
    for key, label in imported_here().items():
        if key not in needed:
            suspect(folder.path, f"the harness had imported the plugin {label} before the run")


def _executor(
    job: Job, pictures: Pictures, folder: RunFolder, progress: Progress
) -> AbstractContextManager[Executor]:
    """Where the method does its work: in this process, or in others if the run is sealed."""
    if job.request.sealed:
        from .sealed.executor import SealedExecutor

        return SealedExecutor(job, pictures, folder, progress)
    from .executor import InProcess

    name, device = job.spec.method, job.backbone.device
    plugin = job.registry.origin("method", name)
    trusted = plugin is not None and not plugin.third_party
    made = InProcess(name, job.build_method, job.spec.seed, device, trusted=trusted)
    return nullcontext(made)
