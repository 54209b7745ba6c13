"""What the Slurm launcher runs in a job: the worker process of one task, watched and stopped.

When Slurm is about to take the node away (preemption, the end of the job's time), submitit calls
`checkpoint`: the worker is stopped and the job queued again, where the run resumes after its last
finished domain.
"""

from __future__ import annotations

import json
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fsdil_bench.exit_codes import INTERRUPTED
from fsdil_bench.system.atomic_files import write_atomically
from fsdil_bench.system.processors import slurm_cpus

from .launcher import Task
from .process import WorkerProcess

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

_TICK = 0.5  # seconds between two looks whether the job shall stop
_STOPPING = 30.0  # seconds that a worker has to stop before its job is queued again
_WARNED = 60.0  # seconds between Slurm's SIGTERM and the signal that queues the job again


class SlurmJob:
    """A task as a job; submitit pickles it, calls it on the node and asks it for a checkpoint."""

    def __init__(self, request_file: Path) -> None:
        self.request_file = request_file
        self._process: WorkerProcess | None = None

    def __call__(self) -> int:
        """Run the worker; gives its exit code and leaves it as a file."""
        task = self._task()
        # Slurm's warning goes to all processes of a job, and would kill this one.
        self._process = WorkerProcess(as_given(task), {}, ignored=[signal.SIGUSR2])
        while (code := self._process.wait(_TICK)) is None:
            order = stop_order(task)
            if order is not None:
                self._process.stop(force=order == "kill")
        if code == INTERRUPTED and stop_order(task) is None:
            # Not the sweep but Slurm has stopped it, and may still say: queue it again.
            time.sleep(_WARNED)
        write_atomically(exit_file(task), json.dumps({"exit_code": code}))
        return code

    def checkpoint(self) -> DelayedSubmission:
        """Stop the worker and let the job be queued again."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            self._process.stop()
            if self._process.wait(_STOPPING) is None:
                self._process.stop(force=True)
        self._task().outcome_file.unlink(missing_ok=True)  # it says that the run was interrupted
        return DelayedSubmission(SlurmJob(self.request_file))

    def _task(self) -> Task:
        return Task.from_json(self.request_file.read_text(encoding="utf-8"))


def as_given(task: Task) -> Task:
    """The task with as many processors as Slurm gave it, not as many as were asked for."""
    cpus = slurm_cpus() or task.resources.cpus
    return replace(task, resources=replace(task.resources, cpus=cpus))


def exit_file(task: Task) -> Path:
    """Where a job leaves the exit code of its worker, when it is not queued again."""
    return task.scratch / "exit.json"


def exit_code(task: Task) -> int | None:
    """The exit code of a job that is over; None for one that is not, as far as files tell."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads(exit_file(task).read_text(encoding="utf-8"))["exit_code"])
    return None


def give_order(task: Task, order: str) -> None:
    """Tell a job to "stop" or "kill" its worker."""
    with suppress(OSError):
        write_atomically(task.scratch / "stop", order)


def stop_order(task: Task) -> str | None:
    """What the sweep has told the job, if it has."""
    with suppress(OSError):
        return (task.scratch / "stop").read_text(encoding="utf-8")
    return None
