"""The worker process of a task on whichever machine it runs, for launchers that reach into others.

It is the leader of a process group of its own, so that it can be killed with all that it started,
and tied to the process that started it by a pipe: it ends when that one does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial

from .launcher import Task


class WorkerProcess:
    """A started worker; it does not heed the signals `ignored`."""

    def __init__(
        self,
        task: Task,
        environment: Mapping[str, str],
        python: str = "",
        ignored: Collection[signal.Signals] = (),
    ) -> None:
        with task.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*task.command(python or sys.executable), "--tied"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment, **task.environment()},
                start_new_session=True,
                preexec_fn=partial(_ignore, ignored) if ignored else None,
            )
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code; None if the process is still there after `timeout` seconds."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self.stop(force=True)  # what the run may have left behind in its group
        if self._process.stdin is not None:
            self._process.stdin.close()
        return code

    def stop(self, *, force: bool = False) -> None:
        """Ask the process to stop, or kill it and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL if force else signal.SIGTERM)


def _ignore(numbers: Collection[signal.Signals]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def own_environment() -> dict[str, str]:
    """The settings of this project in the environment, to hand on to other machines."""
    return {name: value for name, value in os.environ.items() if name.startswith("FSDIL_")}
