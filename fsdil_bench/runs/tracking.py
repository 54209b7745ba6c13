"""Telling plugins and trackers how far a run is; none of them can end it.

The hook `fsdil_domain_finished` reaches every plugin, a tracker only who asks for it. A sealed run
calls no hooks, as its harness runs no code of plugins that it can do without. Trackers that come
with the harness do work there: they live in the trusted process and send nothing to the method.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.descriptors import TrackerInfo, load_factory
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.record import Record

from .finished_domain import FinishedDomain, of_outcome, of_record
from .provenance import provenance
from .run_folder import RunFolder
from .tracker import TrackedRun, Tracker

if TYPE_CHECKING:
    from .job import Job
    from .loop import Outcome

#: The folder below `--out` in which each tracker has a folder of its own.
TRACKERS = "trackers"


def check_trackers(names: Iterable[str], registry: Registry, *, sealed: bool = False) -> None:
    """Refuse trackers that nobody offers, and those whose library is not installed."""
    for name in names:
        info = registry.trackers.get(name)
        if info is None:
            error = unknown("tracker", name, registry.trackers, "fsdil-bench list trackers")
            if sealed:
                raise RequestError(
                    error.message,
                    f"{error.remedy} A sealed run imports no plugin that offers a tracker: take "
                    "one that comes with fsdil-bench, or leave out --sealed.",
                )
            raise error
        for module in info.modules:
            if not _installed(module):
                what = f"'fsdil-bench[{info.extra}]'" if info.extra else module
                raise RequestError(
                    f"tracker '{name}' needs {module}, which is not installed",
                    f"Install it: pip install {what}",
                )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its package is missing, or it is half-imported
        return False


@contextmanager
def tracking(
    job: Job, folder: RunFolder, progress: Progress, *, fresh: bool = False
) -> Iterator[Tracking]:
    """Tell of a run while it is made. Trackers are closed whatever happens to it."""
    told = Tracking(job, folder, progress)
    try:
        if job.request.track:
            plugins = {each.source: each.version for each in job.registry.plugins if each.offers}
            told.start(provenance(job.backbone.device, plugins), fresh=fresh)
        yield told
    finally:
        told.close()


def catch_up(job: Job, folder: RunFolder, record: Record, progress: Progress) -> None:
    """Tell trackers of a run that is complete: each logs what it does not have yet."""
    told = Tracking(job, folder, progress)
    try:
        told.start(record.provenance)
        for domain in of_record(record):
            told.tell_trackers(domain)
        told.run_finished(record)
    finally:
        told.close()


class Tracking:
    """The trackers of one run, and the hook."""

    def __init__(self, job: Job, folder: RunFolder, progress: Progress) -> None:
        self._job = job
        self._folder = folder
        self._progress = progress
        self._trackers: dict[str, Tracker] = {}
        self._complete = False

    def start(self, environment: Mapping[str, Any], *, fresh: bool = False) -> None:
        """Make the trackers. One that says that it was asked for wrongly ends the run here, where
        nothing is lost yet."""
        job = self._job
        for name in dict.fromkeys(job.request.track):
            run = TrackedRun(
                run_id=job.run_id,
                sealed=job.request.sealed,
                key=job.place,
                spec=job.spec.to_dict(),
                environment=environment,
                domains=tuple(domain.name for domain in job.stream.domains),
                place=(tracker_folder(self._folder) / name).absolute(),
                fresh=fresh,
            )
            try:
                self._trackers[name] = _made(job.registry.tracker(name), run)
            except (KeyboardInterrupt, RequestError):
                raise
            except BaseException as error:
                self._warn(name, error)

    def domain_finished(self, outcome: Outcome, t: int, resumed: bool) -> None:
        """Tell everybody that domain `t` is finished."""
        domain = of_outcome(self._job, outcome, t, resumed=resumed)
        if not self._job.request.sealed:
            for failure in self._job.registry.notify_domain(domain):
                self._progress.say(f"warning: {failure}")
        self.tell_trackers(domain)

    def tell_trackers(self, domain: FinishedDomain) -> None:
        """Tell the trackers of a finished domain."""
        self._each(lambda tracker: tracker.domain_finished(domain))

    def run_finished(self, record: Record) -> None:
        """Tell the trackers that the record is on disk; the hook is called later."""
        self._complete = True
        self._each(lambda tracker: tracker.run_finished(record))

    def close(self) -> None:
        """Close all trackers."""
        self._each(lambda tracker: tracker.close(complete=self._complete))
        self._trackers = {}

    def _each(self, call: Callable[[Tracker], None]) -> None:
        """Call all trackers; one that fails costs only itself."""
        for name, tracker in self._trackers.items():
            try:
                call(tracker)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a library may also call sys.exit
                self._warn(name, error)

    def _warn(self, name: str, error: BaseException) -> None:
        said = f"tracker '{name}': " + " ".join(f"{type(error).__name__}: {error}".split())[:300]
        # Without its first line: a log that ends with a whole traceback is that of a failed run.
        self._folder.log(said + "\n" + "".join(traceback.format_tb(error.__traceback__)))
        self._progress.say(f"warning: {said}")


def _made(info: TrackerInfo, run: TrackedRun) -> Tracker:
    tracker: Tracker = load_factory(info.factory, f"tracker '{info.name}'")(run)
    return tracker


def tracker_folder(folder: RunFolder) -> Path:
    """The folder of all trackers, beside those of scenarios."""
    return folder.path.parents[2] / TRACKERS
