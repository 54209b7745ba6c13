"""The launcher for one machine: one process per run, so that a crash costs one run.

Every process is the leader of a process group of its own: an interrupt at the terminal reaches the
scheduler alone, and a run can be killed with all that it started. Its standard input is a pipe that
nobody writes to; when the scheduler dies, however it dies, the pipe closes and the worker ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..config import knob
from .launcher import Event, LauncherSetup, Task

_TICK = 0.05  # seconds between two looks at the processes


@dataclass(frozen=True)
class LocalOptions:
    """What `--launcher-set` can say to the local launcher."""

    nice: int = knob(0, "added to the niceness of the processes", minimum=0, maximum=19)


class LocalLauncher:
    """Processes of this machine, up to `jobs` at a time."""

    def __init__(self, jobs: int, options: LocalOptions) -> None:
        self._jobs = jobs
        self._options = options
        self._running: dict[str, tuple[Task, subprocess.Popen[bytes]]] = {}
        self._events: list[Event] = []

    def capacity(self) -> int:
        """How many tasks may be there at a time."""
        return self._jobs

    def submit(self, tasks: Sequence[Task]) -> None:
        """Start a process for each task."""
        for task in tasks:
            try:
                process = self._start(task)
            except OSError as error:
                lost = task.event("lost", reason=f"the process could not be started: {error}")
                self._events.append(lost)
                continue
            self._running[task.key] = (task, process)
            self._events.append(task.event("started", pid=process.pid))

    def poll(self, timeout: float) -> list[Event]:
        """Events of the processes, waiting for the first."""
        until = time.monotonic() + timeout
        while True:
            self._reap()
            left = until - time.monotonic()
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events
            time.sleep(min(_TICK, left))

    def cancel(self, keys: Collection[str], *, force: bool = False) -> None:
        """Signal the process groups of these tasks."""
        for key in keys:
            if key in self._running:
                _signal(self._running[key][1], signal.SIGKILL if force else signal.SIGTERM)

    def close(self) -> None:
        """Kill what is left."""
        self.cancel(list(self._running), force=True)
        for _, process in self._running.values():
            process.wait()
        self._running.clear()

    def _start(self, task: Task) -> subprocess.Popen[bytes]:
        command = [*task.command(), "--tied"]
        if self._options.nice:
            command = ["nice", "-n", str(self._options.nice), *command]
        with task.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | task.environment(),
                start_new_session=True,
            )

    def _reap(self) -> None:
        for key, (task, process) in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            _signal(process, signal.SIGKILL)  # what the run may have left behind in its group
            if process.stdin is not None:
                process.stdin.close()
            del self._running[key]
            self._events.append(task.ended(code))


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def launch(setup: LauncherSetup) -> LocalLauncher:
    """The launcher for `fsdil-bench sweep --launcher local`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    jobs = setup.jobs or max(1, (cores or 1) // setup.threads)
    return LocalLauncher(jobs, setup.options or LocalOptions())
