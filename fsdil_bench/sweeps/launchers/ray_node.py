"""What the Ray launcher runs on a node: an actor per task that starts and watches its worker.

The worker is a process of its own, so that a crash costs one run. It is tied to the actor: if Ray
kills the actor, or the node loses its cluster, it ends too.
"""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any

from .launcher import Task
from .process import WorkerProcess
from .transfer import arrive, pack_results


class Node:
    """One task on one node; its methods are called from the sweep."""

    def start(
        self, text: str, environment: dict[str, str], python: str, parcel: bytes | None
    ) -> dict[str, Any]:
        """Start the worker of the task in `text`; with a parcel, in a folder of its own."""
        task = Task.from_json(text)
        self._home = None
        if parcel is not None:
            self._home = tempfile.TemporaryDirectory(prefix="fsdil-")
            task = arrive(task, parcel, Path(self._home.name) / "task")
        elif not task.request_file.is_file():
            return {"blind": socket.gethostname()}
        self._task = task
        self._process = WorkerProcess(task, environment, python)
        return {"pid": self._process.pid, "node": socket.gethostname()}

    def wait(self) -> tuple[int | None, bytes | None]:
        """The worker's exit code and, if it came with a parcel, all that it left."""
        code = self._process.wait()
        if self._home is None:
            return code, None
        parcel = pack_results(self._task)
        self._home.cleanup()
        return code, parcel

    def stop(self, force: bool) -> None:
        """Ask the worker to stop, or kill it."""
        self._process.stop(force=force)
