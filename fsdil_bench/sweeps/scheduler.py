"""Taking the cells of a sweep through a launcher: the queue, retries, time limits and states.

All that is known about a cell after a crash lies in its run folder. So the scheduler keeps no state
of its own on disk: the same sweep again looks at the folders and does what is left. Two sweeps over
the same folders see each other through the lock that a worker holds on its run: a cell that is held
elsewhere is waited for, and taken over if the other worker ends without a record.

Time is measured with the monotonic clock, which no one sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from fsdil_bench.exit_codes import BUSY
from fsdil_bench.runs.base_reuse import is_kept
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.system.atomic_files import write_atomically

from .launchers.launcher import PROGRESS_FILE, Event, Launcher, Task
from .plan import Cell
from .states import RunState, forget_failure, read_progress, state_of, write_failure

StatusName = Literal[
    "waiting", "queued", "running", "elsewhere", "done", "failed", "other version", "stopped"
]
OVER = ("done", "failed", "other version", "stopped")

_TICK = 0.5  # seconds to wait for events
_LOOK = 2.0  # seconds between two looks at runs that others hold
_GRACE = 15.0  # seconds that a process has to stop when asked to


@dataclass
class Status:
    """A cell in this sweep. `attempt` counts the processes, also those that found it taken."""

    cell: Cell
    name: StatusName = "waiting"
    attempt: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    started: float | None = None
    seconds: float = 0.0
    domains: int = 0
    phase: str = ""
    reason: str = ""
    remedy: str = ""
    log: Path | None = None
    found: bool = False
    """Done already when the sweep began, or by another sweep meanwhile."""

    @property
    def in_flight(self) -> bool:
        """Whether a launcher has it."""
        return self.name in ("queued", "running")


class Watcher(Protocol):
    """Who shows a user how the sweep is going."""

    def changed(self, status: Status) -> None:
        """A cell has another status now."""
        ...

    def tick(self, board: Sequence[Status]) -> None:
        """Time has passed."""
        ...


class Scheduler:
    """One sweep on its way. `folder` is where the tasks' requests, outcomes and logs go."""

    def __init__(
        self,
        cells: Iterable[Cell],
        launcher: Launcher,
        folder: Path,
        watcher: Watcher,
        *,
        retries: int = 1,
        grace: float = _GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.board = [Status(cell) for cell in cells]
        self._by_key = {status.cell.key: status for status in self.board}
        self._launcher = launcher
        self._folder = folder
        self._watcher = watcher
        self._retries = retries
        self._grace = grace
        self._clock = clock
        self._queue = list(self.board)
        self._stops = 0
        self._stopping: dict[str, float] = {}  # when to use force, by key
        self._next_look = 0.0
        self._patience = float("inf")

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked to stop."""
        return self._stops > 0

    def stop(self) -> None:
        """Stop the processes cleanly; a second call kills them. Safe in a signal handler."""
        self._stops += 1

    def run(self) -> list[Status]:
        """Take every cell as far as it goes."""
        for status in self.board:
            self._look_at(status)
        self._queue = [status for status in self.board if status.name not in OVER]
        try:
            while not self._over():
                self._heed_stop()
                self._submit()
                for event in self._launcher.poll(_TICK):
                    self._take(event)
                self._heed_limits()
                self._look_around()
                self._watcher.tick(self.board)
        finally:
            self._launcher.close()
        for status in self.board:
            if status.name not in OVER:
                self._become(status, "stopped")
        self._watcher.tick(self.board)
        return self.board

    def _over(self) -> bool:
        if self._stops:
            flying = any(status.in_flight for status in self.board)
            return not flying or self._clock() > self._patience
        return all(status.name in OVER for status in self.board)

    def _look_at(self, status: Status) -> RunState:
        """What is in the run's folder; if that settles the matter, the status says so."""
        state = state_of(status.cell.folder)
        status.domains = state.domains
        if state.name == "done":
            status.found = not status.attempt
            status.domains = status.cell.domains
            forget_failure(status.cell.folder)
            self._become(status, "done")
        elif state.name == "other version":
            status.reason = state.why
            self._become(status, "other version")
        return state

    def _become(self, status: Status, name: StatusName) -> None:
        if status.name != name:
            status.name = name
            self._watcher.changed(status)

    def _submit(self) -> None:
        if self._stops:
            return
        room = self._launcher.capacity() - sum(status.in_flight for status in self.board)
        tasks: list[Task] = []
        for status in list(self._queue):
            if len(tasks) >= room:
                break
            if not self._ready(status):
                continue
            self._queue.remove(status)
            task = self._task(status)
            if task is not None:
                tasks.append(task)
        if not tasks:
            return
        try:
            self._launcher.submit(tasks)
        except Exception as error:
            reason = f"the launcher did not take it: {type(error).__name__}: {error}"
            for task in tasks:
                self._take(task.event("lost", reason=reason))

    def _ready(self, status: Status) -> bool:
        """Whether it may start now. Of runs that share a base domain, one at a time until that is
        there: the others take it over instead of learning it again."""
        if RunFolder(status.cell.folder).held():
            self._queue.remove(status)
            self._become(status, "elsewhere")
            return False
        base = status.cell.base
        if base is None or is_kept(base) or status.domains:
            return True
        return not any(
            other.cell.base == base and (other.in_flight or other.name == "elsewhere")
            for other in self.board
            if other is not status
        )

    def _task(self, status: Status) -> Task | None:
        """Write down what is to be done; None if the run is over, or nothing can be written."""
        state = self._look_at(status)
        if status.name in OVER:
            return None
        status.attempt += 1
        status.started, status.phase = None, ""
        cell = status.cell
        fresh = {"fresh": True} if state.name == "damaged" else {}
        task = Task(
            cell.key,
            cell.arguments() | fresh,
            cell.folder,
            self._folder / cell.key / f"attempt-{status.attempt}",
            status.attempt,
            cell.resources,
        )
        status.log = task.log
        self._become(status, "queued")
        try:
            task.scratch.mkdir(parents=True, exist_ok=True)
            write_atomically(task.request_file, task.to_json())
        except OSError as error:
            self._take(task.event("lost", reason=f"{task.scratch} cannot be written: {error}"))
            return None
        return task

    def _take(self, event: Event) -> None:
        status = self._by_key.get(event.key)
        if status is None or event.attempt != status.attempt or not status.in_flight:
            return  # of an attempt that is over
        if event.kind == "started":
            status.started = self._clock()
            self._become(status, "running")
        elif event.kind == "progress":
            status.phase = str(event.detail.get("phase", ""))
        else:
            self._end(status, event)

    def _end(self, status: Status, event: Event) -> None:
        late = self._stopping.pop(status.cell.key, None) is not None
        if status.started is not None:
            status.seconds = self._clock() - status.started
        self._look_at(status)
        if status.name in OVER:  # even if the process was killed: the record says that it is done
            return
        detail = dict(event.detail)
        if event.kind == "failed" and detail.get("exit_code") == BUSY:
            self._become(status, "elsewhere")
        elif self._stops:
            self._become(status, "stopped")
        else:
            if late:
                limit = status.cell.resources.time_limit
                detail |= {"reason": f"stopped after its time limit of {limit:g} s", "retry": True}
            elif event.kind == "finished":
                detail["reason"] = "the process said it was done, but there is no record"
            self._fail(status, detail)

    def _fail(self, status: Status, detail: dict[str, Any]) -> None:
        status.reason = str(detail.get("reason", ""))
        status.remedy = str(detail.get("remedy", ""))
        status.failures.append({"attempt": status.attempt, **detail})
        cell = status.cell
        write_failure([cell.folder, self._folder / cell.key], cell.key, status.failures, status.log)
        if detail.get("retry", True) and len(status.failures) <= self._retries:
            self._become(status, "waiting")
            self._queue.append(status)
        else:
            self._become(status, "failed")

    def _heed_limits(self) -> None:
        now = self._clock()
        for status in self.board:
            limit = status.cell.resources.time_limit
            if status.name != "running" or limit is None or status.started is None:
                continue
            key = status.cell.key
            if key not in self._stopping and now - status.started > limit:
                self._cancel([key])
        for key in [key for key, when in self._stopping.items() if now > when]:
            self._stopping[key] = now + self._grace  # once more, should it not help
            self._launcher.cancel([key], force=True)

    def _heed_stop(self) -> None:
        if not self._stops:
            return
        # Should a launcher never say what became of a task, the sweep ends all the same.
        self._patience = min(self._patience, self._clock() + 3 * self._grace)
        flying = [status.cell.key for status in self.board if status.in_flight]
        self._cancel([key for key in flying if key not in self._stopping])
        if self._stops > 1:
            self._launcher.cancel(flying, force=True)

    def _cancel(self, keys: Collection[str]) -> None:
        if keys:
            self._launcher.cancel(keys)
        self._stopping |= dict.fromkeys(keys, self._clock() + self._grace)

    def _look_around(self) -> None:
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK
        for status in self.board:
            if status.name == "running":
                status.domains = RunFolder(status.cell.folder).finished_domains()
                status.phase = self._phase(status) or status.phase
            elif status.name == "elsewhere":
                held = RunFolder(status.cell.folder).held()  # first this, or a record is overlooked
                self._look_at(status)
                if status.name == "elsewhere" and not held:
                    self._become(status, "waiting")
                    self._queue.append(status)

    def _phase(self, status: Status) -> str:
        return read_progress(status.log.parent / PROGRESS_FILE) if status.log else ""


def counts(board: Sequence[Status]) -> dict[str, int]:
    """How many cells there are of each status."""
    found: dict[str, int] = {}
    for status in board:
        found[status.name] = found.get(status.name, 0) + 1
    return found
