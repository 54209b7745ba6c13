"""The process of one run in a sweep: `python -m fsdil_bench.sweeps.worker REQUEST.json`.

It carries out the request, says about once a second how far it is, and leaves its outcome as a file
that is complete or not there at all. SIGTERM and SIGINT stop it between two steps: what the run
has finished is kept. Its exit codes are those of all commands (`exit_codes`). A run that failed is
tried again, since the cause may have been outside it; bad input stays bad.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from fsdil_bench.errors import FsdilError, HeldError
from fsdil_bench.exit_codes import BUSY, DONE, FAILED, INTERRUPTED
from fsdil_bench.progress import PlainProgress, Stretch
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.system.atomic_files import write_atomically
from fsdil_bench.system.posix import end_with

from .launchers.launcher import Task

_FLAGS = {"config": "--set", "scenario_options": "--scenario-set"}
_EVERY = 1.0  # seconds between two notes of progress


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the request in the given file."""
    parser = argparse.ArgumentParser(prog="fsdil_bench.sweeps.worker", description=__doc__)
    parser.add_argument("request", type=Path, help="file written by the scheduler of a sweep")
    parser.add_argument(
        "--tied", action="store_true", help="end when standard input is closed by its other side"
    )
    options = parser.parse_args(arguments)
    if options.tied:
        threading.Thread(target=end_with, args=(0,), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    return work(Task.from_json(options.request.read_text(encoding="utf-8")))


def work(task: Task) -> int:
    """Carry out a task and leave its outcome; returns the exit code."""
    began = time.monotonic()
    outcome: dict[str, Any]
    try:
        _run(task)
        code, outcome = DONE, {"status": "complete"}
    except KeyboardInterrupt:
        code, outcome = INTERRUPTED, {"status": "interrupted", "reason": "interrupted"}
    except Exception as error:
        traceback.print_exc()
        code, outcome = _failure(error)
    outcome |= {"exit_code": code, "seconds": round(time.monotonic() - began, 3)}
    with suppress(OSError):  # a full disk: the exit code still says it
        write_atomically(task.outcome_file, json.dumps(outcome, indent=1) + "\n")
    return code


def _run(task: Task) -> None:
    if RunFolder(task.folder).held():  # known before torch is imported; `run` checks it again
        raise HeldError(f"another process is at work on {task.folder}")

    import torch

    from fsdil_bench.runs.runner import run

    threads = given_threads(task)
    request = dict(task.request)
    if request.get("workers") == task.resources.cpus:  # as many as there are threads
        request["workers"] = threads
    torch.set_num_threads(threads)
    sys.argv = as_command(request)  # what the record shows as the command of this run
    run(**request, planned=task.folder, progress=_FileProgress(task))


def given_threads(task: Task) -> int:
    """What the launcher gave this process, which on a cluster may be more than was asked for."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() else task.resources.cpus


def as_command(request: Mapping[str, Any]) -> list[str]:
    """The `fsdil-bench run` that asks for the same."""
    words = ["fsdil-bench", "run", "--method", request["method"], "--scenario", request["scenario"]]
    words += ["--seed", str(request.get("seed", 0))]
    for name, value in request.items():
        flag = f"--{name.replace('_', '-')}"
        if name in _FLAGS:
            words += [
                word for item in value.items() for word in (_FLAGS[name], "=".join(map(str, item)))
            ]
        elif name == "plugins":
            words += [word for file in value for word in ("--plugin", file)]
        elif value is True:
            words.append(flag)
        elif name not in ("method", "scenario", "seed", "out", "fresh"):
            words += [flag, ",".join(value) if isinstance(value, list) else str(value)]
    return words


def _failure(error: Exception) -> tuple[int, dict[str, Any]]:
    name = type(error).__name__
    said = FsdilError(f"{name}: {error}") if not isinstance(error, FsdilError) else error
    code = said.exit_code
    return code, {
        "status": "elsewhere" if code == BUSY else "failed",
        "error": name,
        "reason": said.message,
        "remedy": said.remedy,
        "retry": code == FAILED,
    }


class _FileProgress(PlainProgress):
    """Lines for the log, and a small file that says how far the run is."""

    def __init__(self, task: Task) -> None:
        super().__init__(sys.stdout)
        self._task = task
        self._next = 0.0

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Note what is being done."""
        with super().phase(name, total):
            self._note()
            yield

    def advance(self, amount: int = 1) -> None:
        """Note how much of it is done."""
        super().advance(amount)
        self._note()

    def _note(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        now = self._open[-1] if self._open else Stretch("", None, 0)
        note = {"phase": now.name, "done": now.done, "total": now.total, "pid": os.getpid()}
        draft = self._task.progress_file.with_suffix(".tmp")
        with suppress(OSError):
            draft.write_text(json.dumps(note), encoding="utf-8")
            draft.replace(self._task.progress_file)


def _interrupt(number: int, frame: object) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
