"""The launcher for Slurm through submitit (extra `slurm`): tasks as job arrays.

Needs a file system that the nodes share. A job says through files how it ends and is told through
files to stop, so that Slurm is asked little: one `squeue` for all jobs now and then finds those
that ended without a word. Jobs that are preempted or run out of time are queued again by Slurm.
"""

from __future__ import annotations

import logging
import math
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.options import option

from .launcher import Event, LauncherSetup, Resources, Task
from .slurm_job import SlurmJob, exit_code, give_order

_TICK = 0.2  # seconds between two looks at the files of the jobs
#: States of Slurm in which a job is over; in all others it may still run, or run again.
_OVER = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "REVOKED", "TIMEOUT", "FINISHED", "INTERRUPTED", "gone",
)  # fmt: skip


@dataclass(frozen=True)
class SlurmOptions:
    """What `--launcher-set` can say to the Slurm launcher."""

    partition: str = option("", "the partition; default: Slurm's")
    account: str = option("", "the account to charge")
    qos: str = option("", "the quality of service")
    time: int = option(1440, "minutes of a job; a run that needs more is queued again", minimum=1)
    gpus: float = option(0.0, "GPUs of a run that asks for none itself (rounded up)", minimum=0)
    mem_gb: float = option(0.0, "memory of a run that asks for none itself; 0: Slurm's", minimum=0)
    extra: tuple[str, ...] = option(
        (), "more parameters of sbatch, for instance mail-type=END,nice=100"
    )
    setup: tuple[str, ...] = option((), "commands to run first, for instance 'module load cuda'")
    requeues: int = option(10, "how often a job that ran out of time is queued again", minimum=0)
    warning: int = option(120, "seconds before the end at which Slurm warns a job", minimum=1)
    queue: int = option(200, "jobs given to Slurm at a time, unless --jobs says", minimum=1)
    poll: float = option(30.0, "seconds between two questions to Slurm", minimum=0.1)
    cluster: Literal["slurm", "local"] = option(
        "slurm", "local: jobs are processes of this machine, to try it out"
    )


@dataclass
class _Flight:
    """A task on its way, and the job that it is."""

    task: Task
    job: Any
    started: bool = False
    missed: bool = False  # Slurm has it no more, as of the last question


class SlurmLauncher:
    """Tasks as jobs of Slurm. `states` asks for the states of jobs by id; None: no answer."""

    def __init__(
        self,
        executor: Any,
        setup: LauncherSetup,
        states: Callable[[list[Any]], dict[str, str] | None],
    ) -> None:
        self._executor = executor
        self._jobs = setup.jobs
        self._options: SlurmOptions = setup.options or SlurmOptions()
        self._states = states
        self._flights: dict[str, _Flight] = {}
        self._events: list[Event] = []
        self._asked = time.monotonic()

    def capacity(self) -> int:
        """How many jobs may be in Slurm's queue or run."""
        return self._jobs or (1 if self._options.cluster == "local" else self._options.queue)

    def submit(self, tasks: Sequence[Task]) -> None:
        """One array for all tasks that need the same."""
        groups: dict[Resources, list[Task]] = {}
        for task in tasks:
            groups.setdefault(task.resources, []).append(task)
        for alike in groups.values():
            self._executor.update_parameters(**self._parameters(alike[0].resources))
            with self._executor.batch():
                jobs = [self._executor.submit(SlurmJob(task.request_file)) for task in alike]
            for task, job in zip(alike, jobs, strict=True):
                self._flights[task.key] = _Flight(task, job)

    def poll(self, timeout: float) -> list[Event]:
        """What the jobs left in their folders, and what Slurm says of the others."""
        until = time.monotonic() + timeout
        while True:
            for flight in list(self._flights.values()):
                self._look(flight)
            if time.monotonic() - self._asked > self._options.poll:
                self._ask()
            left = until - time.monotonic()
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events
            time.sleep(min(_TICK, left))

    def cancel(self, keys: Collection[str], *, force: bool = False) -> None:
        """Jobs that run are told to stop, those in the queue are taken out of it."""
        flights = [self._flights[key] for key in keys if key in self._flights]
        for flight in flights:
            give_order(flight.task, "kill" if force else "stop")
        waiting = [flight for flight in flights if not flight.started]
        self._cancel_jobs(flights if force else waiting)
        for flight in waiting:
            self._land(flight, flight.task.event("lost", reason="stopped before it began"))

    def close(self) -> None:
        """Take all jobs that are left from Slurm."""
        self.cancel(list(self._flights), force=True)
        self._flights.clear()

    def _parameters(self, resources: Resources) -> dict[str, Any]:
        """Parameters of submitit for jobs that need this."""
        options = self._options
        parameters: dict[str, Any] = {
            "name": "fsdil",
            "timeout_min": options.time,
            "cpus_per_task": resources.cpus,
            "slurm_array_parallelism": self.capacity(),
            "slurm_signal_delay_s": options.warning,
            "slurm_additional_parameters": _pairs(options.extra),
        }
        if gpus := resources.gpus or options.gpus:
            parameters["gpus_per_node"] = math.ceil(gpus)
        if memory := resources.memory_gb or options.mem_gb:
            parameters["mem_gb"] = memory
        if options.setup:
            parameters["slurm_setup"] = list(options.setup)
        for name in ("partition", "account", "qos"):
            if value := getattr(options, name):
                parameters[f"slurm_{name}"] = value
        return parameters

    def _look(self, flight: _Flight) -> None:
        """Look at the files of a job."""
        task = flight.task
        if not flight.started and task.log.exists():
            flight.started = True
            self._events.append(task.event("started", job=flight.job.job_id))
        code = exit_code(task)
        if code is not None:
            self._land(flight, task.ended(code))

    def _ask(self) -> None:
        """Find the jobs that are over and have left no word; twice, for slow file systems."""
        self._asked = time.monotonic()
        flights = list(self._flights.values())
        states = self._states([flight.job for flight in flights]) if flights else {}
        if states is None:
            return
        for flight in flights:
            state = states.get(flight.job.job_id, "gone")
            if state not in _OVER:
                flight.missed = False
            elif not flight.missed:
                flight.missed = True
            else:
                ended = flight.task.ended(None)
                if ended.kind == "lost":
                    reason = f"job {flight.job.job_id} ended without a word; Slurm says: {state}"
                    ended = flight.task.event("lost", reason=reason)
                self._land(flight, ended)

    def _land(self, flight: _Flight, event: Event) -> None:
        del self._flights[flight.task.key]
        self._events.append(event)

    def _cancel_jobs(self, flights: Iterable[_Flight]) -> None:
        jobs = [flight.job for flight in flights]
        if self._options.cluster == "local":
            for job in jobs:
                job.cancel(check=False)
        elif jobs:
            with suppress(OSError, subprocess.SubprocessError):
                ids = [job.job_id for job in jobs]
                subprocess.run(["scancel", *ids], capture_output=True, timeout=60, check=False)


def launch(setup: LauncherSetup) -> SlurmLauncher:
    """The launcher for `fsdil-bench sweep --launcher slurm`."""
    import submitit

    logging.getLogger("submitit").setLevel(logging.ERROR)
    options: SlurmOptions = setup.options or SlurmOptions()
    _pairs(options.extra)
    try:
        executor = submitit.AutoExecutor(
            setup.folder / "jobs",
            cluster=options.cluster,
            slurm_max_num_timeout=options.requeues,
        )
    except RuntimeError:
        raise RequestError(
            "Slurm is not on this machine: there is no 'srun'",
            "Start the sweep on a login node of the cluster, or try it out with "
            "--launcher-set cluster=local.",
        ) from None
    return SlurmLauncher(executor, setup, _squeue if options.cluster == "slurm" else _local_states)


def _squeue(jobs: list[Any]) -> dict[str, str] | None:
    """The states of those jobs that Slurm still knows, by one call."""
    ids = sorted({job.job_id.partition("_")[0] for job in jobs})
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T"]
    try:
        done = subprocess.run(
            [*command, f"--jobs={','.join(ids)}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return {} if "nvalid job id" in done.stderr else None
    return dict(line.split(None, 1) for line in done.stdout.splitlines() if " " in line.strip())


def _local_states(jobs: list[Any]) -> dict[str, str] | None:
    return {job.job_id: str(job.state).upper() for job in jobs}


def _pairs(extra: Iterable[str]) -> dict[str, Any]:
    """`["nice=100", "exclusive"]` as parameters of sbatch."""
    pairs: dict[str, Any] = {}
    for text in extra:
        name, equals, value = text.strip().lstrip("-").partition("=")
        if not name:
            raise RequestError(f"'{text}' is no parameter of sbatch", "Write extra=nice=100.")
        pairs[name] = value if equals else True
    return pairs
