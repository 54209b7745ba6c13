"""What a launcher is: it starts, watches and stops the processes of a sweep, and no more.

The scheduler owns the queue, retries, time limits, states and the display; the same scheduler
drives every launcher. A launcher is offered by the hook `fsdil_launchers`; its factory takes a
`LauncherSetup`. It needs a file system that scheduler and workers share: a task is handed over as
a file, and its outcome comes back as one. For each task it runs `task.command()` with the variables
of `task.environment()` added to the environment, output and errors appended to `task.log`, and when
that process is over reports `task.ended(exit_code)`.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

PROGRESS_FILE = "progress.json"

EventKind = Literal["started", "progress", "finished", "failed", "lost"]


@dataclass(frozen=True)
class Resources:
    """What a run needs. `cpus` is also its number of threads, which the record notes."""

    cpus: int = 1
    gpus: float = 0
    memory_gb: float | None = None
    time_limit: float | None = None
    """Seconds, counted from the start of the process; the scheduler sees to it."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a task.

    `detail` of a "failed" (the worker said what is wrong): `reason`, `remedy`, `error` (the type),
    `retry` (whether another try may help) and `exit_code`. Of a "lost" (the process ended without
    saying why, was killed, or its node went away): `reason`, and `exit_code` or `signal` where
    known. "progress" is for launchers that know more than the task's progress file (`phase`).
    """

    key: str
    kind: EventKind
    attempt: int = 1
    detail: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None


@dataclass(frozen=True)
class Task:
    """One attempt at one run.

    `key` is the run's folder below the sweep's output folder, and the same in every sweep.
    `request` holds the arguments of `fsdil_bench.run` as plain JSON types with absolute paths.
    `scratch` is a folder for this attempt alone: request, outcome, progress and log.
    """

    key: str
    request: Mapping[str, Any]
    folder: Path
    scratch: Path
    attempt: int = 1
    resources: Resources = Resources()

    @property
    def request_file(self) -> Path:
        """What the worker reads; written by the scheduler before the task is submitted."""
        return self.scratch / "request.json"

    @property
    def outcome_file(self) -> Path:
        """What the worker leaves, if it comes to an end."""
        return self.scratch / "outcome.json"

    @property
    def progress_file(self) -> Path:
        """How far the worker is, rewritten about once a second; the scheduler reads it."""
        return self.scratch / PROGRESS_FILE

    @property
    def log(self) -> Path:
        """Where the process' output and errors belong."""
        return self.scratch / "log.txt"

    def command(self, python: str = sys.executable) -> list[str]:
        """The worker process of this task."""
        return [python, "-m", "fsdil_bench.sweeps.worker", str(self.request_file)]

    def environment(self) -> dict[str, str]:
        """Variables to set for the worker: libraries read them when they are loaded."""
        threads = str(self.resources.cpus)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return dict.fromkeys(names, threads) | {"PYTHONUNBUFFERED": "1"}

    def event(self, kind: EventKind, **detail: Any) -> Event:
        """An event of this task."""
        return Event(self.key, kind, self.attempt, detail, self.log)

    def ended(self, exit_code: int | None) -> Event:
        """The event for a process that is over: by its outcome file, else by its exit code.

        Negative codes are signals, as in `subprocess`; None is an end that nobody saw.
        """
        outcome = self._outcome()
        if outcome is not None:
            done = outcome.get("status") == "complete"
            detail = {name: value for name, value in outcome.items() if name != "status"}
            return self.event("finished" if done else "failed", **detail)
        return self.event("lost", **_lost(exit_code))

    def _outcome(self) -> dict[str, Any] | None:
        try:
            outcome = json.loads(self.outcome_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return outcome if isinstance(outcome, dict) else None

    def to_json(self) -> str:
        """The content of the request file."""
        plain = asdict(self) | {"folder": str(self.folder), "scratch": str(self.scratch)}
        return json.dumps(plain, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task in a request file."""
        plain = json.loads(text)
        plain["resources"] = Resources(**plain["resources"])
        return cls(**plain | {name: Path(plain[name]) for name in ("folder", "scratch")})


def _lost(exit_code: int | None) -> dict[str, Any]:
    if exit_code is None:
        return {"reason": "the process is gone"}
    if exit_code >= 0:
        return {"reason": f"the process ended with exit code {exit_code}", "exit_code": exit_code}
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return {"reason": f"the process was killed by {name}{hint}", "signal": name}


@runtime_checkable
class Launcher(Protocol):
    """The only thing that differs between a laptop and a cluster."""

    def capacity(self) -> int:
        """How many tasks may be submitted and not yet over, at this moment."""
        ...

    def submit(self, tasks: Sequence[Task]) -> None:
        """Start these tasks, or queue them; a batch, where a cluster has job arrays."""
        ...

    def poll(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits up to `timeout` seconds for something.

        Every submitted task gets one "started" (when its process runs, not when it is queued) and,
        sooner or later, exactly one "finished", "failed" or "lost".
        """
        ...

    def cancel(self, keys: Collection[str], *, force: bool = False) -> None:
        """Ask the processes of these tasks to stop (SIGTERM), with `force` kill them (SIGKILL).

        Their end is reported by `poll` as usual. Unknown keys are ignored.
        """
        ...

    def close(self) -> None:
        """Kill what is still there and give everything back. May be called twice."""
        ...


@dataclass(frozen=True)
class LauncherSetup:
    """What a launcher's factory gets.

    `jobs` is how many tasks may run at a time (None: the launcher's own choice), `threads` how many
    each of them has, `folder` a place for the launcher's own files, `options` an instance of the
    descriptor's `options` class with the values of `--launcher-set`.
    """

    folder: Path
    jobs: int | None = None
    threads: int = 1
    options: Any = None
