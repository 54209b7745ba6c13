"""Workers that start warm: copies of a process that has imported torch and open_clip already.

Importing them takes seconds, more than a run on frozen features. So the local launcher keeps one
process that has done so and does nothing but fork: every run still has a process of its own, and a
crash costs that run alone.

The launcher writes one JSON line per task to its standard input, and reads one for every process
that has begun and for every one that is over. If the launcher goes away, the input ends, and the
nursery kills its children; if the nursery goes away, they see a pipe closed and end as well.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from fsdil_bench.system.posix import require_posix

from .launcher import Task

require_posix("a sweep on this machine")

_TICK = 0.05  # seconds between two looks at the children


class Nursery:
    """The launcher's side: a process that forks workers with a fixed number of threads."""

    def __init__(self, environment: Mapping[str, str], prefix: Sequence[str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "fsdil_bench.sweeps.launchers.nursery"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._rest = b""

    @property
    def alive(self) -> bool:
        """Whether it can take tasks."""
        return self._process.poll() is None

    def start(self, task: Task, environment: Mapping[str, str]) -> None:
        """Fork a worker for a task; raises OSError if the process is gone."""
        order = {"key": task.key, "request": str(task.request_file), "log": str(task.log)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order | {"env": dict(environment)}).encode() + b"\n")
        self._process.stdin.flush()

    def news(self) -> list[dict[str, Any]]:
        """What has happened: `key` and `pid`, and `code` of a process that is over."""
        assert self._process.stdout is not None
        lines = (self._rest + (self._process.stdout.read() or b"")).split(b"\n")
        self._rest = lines.pop()
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Kill it, and so its children."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def main() -> None:
    """Fork a worker for every line of standard input, until that ends."""
    _import_what_runs_need()
    life, owner = os.pipe()  # nobody writes to it; it closes when this process ends
    children: dict[int, str] = {}
    rest = b""
    while True:
        if select.select([0], [], [], _TICK)[0]:
            data = os.read(0, 65536)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    os.close(owner)
                    _become_worker(order, life)
                children[pid] = order["key"]
                _tell(key=order["key"], pid=pid)
        for pid, code in _ended(children):
            _tell(key=children.pop(pid), pid=pid, code=code)
    for pid in children:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _import_what_runs_need() -> None:
    """All that takes long: imports, and looking through the code of what is installed.

    Nothing here may start threads or touch a GPU, or forking would be unsafe.
    """
    import open_clip.model  # noqa: F401
    import torch  # noqa: F401

    from fsdil_bench.plugins.code_hash import code_version
    from fsdil_bench.plugins.registry import load_registry
    from fsdil_bench.runs import loop as protocol  # noqa: F401

    registry = load_registry()
    factories = [info.factory for info in registry.methods.values()]
    factories += [info.factory for info in registry.scenarios.values()]
    for factory in factories:
        with suppress(Exception):  # a broken plugin is the matter of the run that needs it
            code_version(factory)


def _ended(children: Mapping[int, str]) -> list[tuple[int, int]]:
    ended = []
    for pid in children:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended


def _tell(**news: Any) -> None:
    sys.stdout.write(json.dumps(news) + "\n")
    sys.stdout.flush()


def _become_worker(order: Mapping[str, Any], life: int) -> NoReturn:
    """In the copy: a session, a log and surroundings of its own, then the task."""
    from fsdil_bench.sweeps.worker import end_with, main

    code = 1
    try:
        os.setsid()
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.environ.update(order["env"])
        threading.Thread(target=end_with, args=(life,), daemon=True).start()
        code = main([order["request"]])
    except BaseException:
        traceback.print_exc()
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End as any process does, but for taking apart, module by module, what was imported."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
