"""The launcher for one machine: one process per run, so that a crash costs one run.

Every process is the leader of a process group of its own: an interrupt at the terminal reaches the
scheduler alone, and a run can be killed with all that it started. It watches a pipe that nobody
writes to; when the scheduler dies, however it dies, the pipe closes and the worker ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.options import option
from fsdil_bench.system.fork_server import ForkServer
from fsdil_bench.system.posix import CAN_FORK

from .launcher import Event, LauncherSetup, Task

_TICK = 0.05  # seconds between two looks at the processes
_GB = 1e9


@dataclass(frozen=True)
class LocalOptions:
    """What `--launcher-set` can say to the local launcher."""

    warm: bool = option(CAN_FORK, "start runs as copies of a process with torch")
    nice: int = option(0, "added to the niceness of the processes", minimum=0, maximum=19)
    devices: tuple[str, ...] = option((), "CUDA devices to spread the runs over, for instance 0,1")


@dataclass
class _Running:
    """A task with its process: one of our own, or one of a fork server (known by its id)."""

    task: Task
    device: str
    server: ForkServer | None = None
    process: subprocess.Popen[bytes] | None = None
    pid: int | None = None
    wanted: signal.Signals | None = None


class LocalLauncher:
    """Processes of this machine, up to `jobs` at a time.

    A task that states its memory waits until so much is free beside what the others may still take.
    """

    def __init__(self, jobs: int, options: LocalOptions, folder: Path) -> None:
        self._jobs = jobs
        self._options = options
        self._folder = folder
        self._waiting: list[Task] = []
        self._running: dict[str, _Running] = {}
        self._servers: dict[int, ForkServer] = {}  # by number of threads
        self._events: list[Event] = []

    def capacity(self) -> int:
        """How many tasks may be there at a time."""
        return self._jobs

    def submit(self, tasks: Sequence[Task]) -> None:
        """Start a process for each task, as soon as there is memory for it."""
        for task in tasks:
            needed, there = task.resources.memory_gb or 0, memory("MemTotal")
            if there is not None and needed * _GB > there:
                reason = f"it needs {needed:g} GB, this machine has {there / _GB:.1f} GB"
                self._events.append(task.event("failed", reason=reason, retry=False))
            else:
                self._waiting.append(task)
        self._start_waiting()

    def poll(self, timeout: float) -> list[Event]:
        """Events of the processes, waiting for the first."""
        until = time.monotonic() + timeout
        while True:
            self._hear()
            self._reap()
            self._start_waiting()
            left = until - time.monotonic()
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events
            time.sleep(min(_TICK, left))

    def cancel(self, keys: Collection[str], *, force: bool = False) -> None:
        """Signal the process groups of these tasks."""
        for task in [task for task in self._waiting if task.key in keys]:
            self._waiting.remove(task)
            self._events.append(task.event("lost", reason="it was stopped before it began"))
        for key in keys:
            if key in self._running:
                self._signal(self._running[key], signal.SIGKILL if force else signal.SIGTERM)

    def close(self) -> None:
        """Kill what is left."""
        self._waiting.clear()
        self.cancel(list(self._running), force=True)
        for server in self._servers.values():
            server.close()
        for running in self._running.values():
            if running.process is not None:
                running.process.wait()
        self._servers.clear()
        self._running.clear()

    def _start_waiting(self) -> None:
        for task in list(self._waiting):
            if not self._fits(task):
                continue
            self._waiting.remove(task)
            try:
                self._start(task)
            except OSError as error:
                self._running.pop(task.key, None)
                reason = f"the process could not be started: {error}"
                self._events.append(task.event("lost", reason=reason))

    def _fits(self, task: Task) -> bool:
        free = memory("MemAvailable")
        if task.resources.memory_gb is None or free is None:
            return True
        for running in self._running.values():  # they may not have taken all of theirs yet
            stated = (running.task.resources.memory_gb or 0) * _GB
            free -= max(0.0, stated - (resident(running.pid) if running.pid else 0.0))
        return task.resources.memory_gb * _GB <= free

    def _start(self, task: Task) -> None:
        device = self._device()
        chosen = {"CUDA_VISIBLE_DEVICES": device} if device else {}
        prefix = ["nice", "-n", str(self._options.nice)] if self._options.nice else []
        running = _Running(task, device)
        self._running[task.key] = running
        if self._options.warm:
            running.server = self._server(task, prefix)
            order = {
                "request": str(task.request_file),
                "environment": task.environment() | chosen,
            }
            with task.log.open("ab") as log:
                running.server.start(task.key, log.fileno(), order=order)
            return
        with task.log.open("ab") as log:
            running.process = subprocess.Popen(
                [*prefix, *task.command(), "--tied"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | task.environment() | chosen,
                start_new_session=True,
            )
        self._began(running, running.process.pid)

    def _server(self, task: Task, prefix: Sequence[str]) -> ForkServer:
        """The fork server with this number of threads; a new one if that has died."""
        threads = task.resources.cpus
        known = self._servers.get(threads)
        if known is None or not known.alive:
            if known is not None:
                known.close()
            self._servers[threads] = ForkServer(
                "fsdil_bench.sweeps.launchers.warm_worker",
                environment=os.environ | task.environment(),
                command=[*prefix, sys.executable],
                log=self._folder / f"fork-server-{threads}.txt",
            )
        return self._servers[threads]

    def _device(self) -> str:
        """The CUDA device with the fewest runs."""
        busy = [running.device for running in self._running.values()]
        return min(self._options.devices, key=busy.count, default="")

    def _began(self, running: _Running, pid: int) -> None:
        running.pid = pid
        self._events.append(running.task.event("started", pid=pid))
        if running.wanted is not None:
            self._signal(running, running.wanted)

    def _hear(self) -> None:
        """What the fork servers say about their processes; those of a dead server are lost."""
        for server in {id(r.server): r.server for r in self._running.values()}.values():
            if server is None:
                continue
            alive = server.alive  # first this, or its last news are overlooked
            for news in server.news():
                running = self._running.get(news.key)
                if running is None or running.server is not server:
                    continue
                if news.code is not None:
                    self._end(running, news.code)
                else:
                    self._began(running, news.pid)
            if not alive:
                for running in [r for r in self._running.values() if r.server is server]:
                    self._end(running, None)

    def _reap(self) -> None:
        for running in list(self._running.values()):
            if running.process is not None and (code := running.process.poll()) is not None:
                if running.process.stdin is not None:
                    running.process.stdin.close()
                self._end(running, code)

    def _end(self, running: _Running, code: int | None) -> None:
        self._signal(running, signal.SIGKILL)  # what it may have left behind in its group
        del self._running[running.task.key]
        self._events.append(running.task.ended(code))

    def _signal(self, running: _Running, number: signal.Signals) -> None:
        running.wanted = number
        if running.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, number)


def memory(which: str) -> float | None:
    """A line of Linux' /proc/meminfo in bytes; None where there is no such file."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{which}:"):
                return float(line.split()[1]) * 1024
    return None


def resident(pid: int) -> float:
    """The memory that a process holds, in bytes; 0 where that is not known."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    return 0.0


def launch(setup: LauncherSetup) -> LocalLauncher:
    """The launcher for `fsdil-bench sweep --launcher local`."""
    options = setup.options or LocalOptions()
    if options.warm and not CAN_FORK:
        raise RequestError(
            "launcher local: warm=true copies a process with torch, which is safe on Linux alone",
            "Leave it out: every run then starts a Python of its own.",
        )
    return LocalLauncher(setup.jobs or 1, options, setup.folder)
