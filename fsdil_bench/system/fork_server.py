"""Processes that start warm: copies of a process that has imported what takes long.

Importing torch takes seconds. So one process, the fork server, imports what all of its copies need
and then does nothing but fork: each copy is a new process, and a crash costs that copy alone. What
the copies do is the `main(order, descriptors)` of a module; what is imported before is in its
`preload()` and, for those who ask for it, in `preload_more(names)`. Neither may start threads or
touch a GPU, or forking would be unsafe.

The server of `multiprocessing` does not serve: there is one per process, with the environment and
the folder of that process, while the number of torch's threads, the priority and what a sealed
method may know are all decided by the environment and command of the server. Its children also
import the `__main__` of whoever starts them.

No copy outlives its owner. When the owner goes away, its end of the socket closes: the server
gives its copies a moment to end by themselves and kills the rest. When the server goes away, the
copies see a pipe closed and end as well.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from .posix import end_with, require_posix
from .quick_exit import leave

require_posix("starting runs in processes of their own")

_LARGEST = 1 << 16  # bytes of an order or of news
_MOST_DESCRIPTORS = 8


class News(NamedTuple):
    """A process has begun (no code), or has ended with an exit code (negative: by a signal)."""

    key: str
    pid: int
    code: int | None = None


class ForkServer:
    """The owner's side: starts copies of a process that has imported `module`.

    `command` is the Python to start it with, `environment` its whole environment, `folder` its
    working folder. What the server itself prints is appended to the file `log`. `grace` is how many
    seconds the copies have to end by themselves when this process is gone.
    """

    def __init__(
        self,
        module: str,
        *,
        environment: Mapping[str, str],
        command: Sequence[str] = (sys.executable,),
        folder: str | None = None,
        log: Path | None = None,
        grace: float = 0.0,
    ) -> None:
        self.connection, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        output = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("ab")
        try:
            self._process = subprocess.Popen(
                [*command, "-m", __name__, module, str(theirs.fileno()), str(grace)],
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the owner
            )
        finally:
            theirs.close()
            if output is not None:
                output.close()

    @property
    def alive(self) -> bool:
        """Whether it can take orders."""
        return self._process.poll() is None

    def start(
        self, key: str, output: int, *descriptors: int, order: Mapping[str, Any] | None = None
    ) -> None:
        """Start a copy: `output` is where it prints, `order` (JSON types) and the file descriptors
        are what its `main` gets. Raises OSError if the server is gone."""
        message = json.dumps({"key": key, "order": order or {}}).encode()
        socket.send_fds(self.connection, [message], [output, *descriptors])

    def preload_more(self, names: Iterable[str]) -> None:
        """Let copies that are started later have these libraries imported, too."""
        with suppress(OSError):  # it is gone, as the next start will notice
            self.connection.sendall(json.dumps({"preload": sorted(names)}).encode())

    def news(self, timeout: float | None = 0) -> list[News]:
        """What has happened since the last call; waits up to `timeout` seconds (None: until there
        is something, or the server is gone)."""
        return received(self.connection, timeout)

    def close(self) -> None:
        """Kill the server, and so its copies."""
        self.connection.close()
        self._process.kill()
        self._process.wait()


def received(connection: socket.socket, timeout: float | None) -> list[News]:
    """The news that wait in a socket, one in each packet."""
    found: list[News] = []
    with suppress(OSError):
        while select.select([connection], [], [], 0 if found else timeout)[0]:
            message = connection.recv(_LARGEST)
            if not message:
                break
            found.append(News(**json.loads(message)))
    return found


def main() -> None:
    """Fork a process for every order, until the owner is gone."""
    name, descriptor, grace = sys.argv[1:]
    owner = socket.socket(fileno=int(descriptor))
    module = importlib.import_module(name)
    module.preload()
    gc.freeze()  # collecting what the copies share would give each copy memory of its own
    ended, bell = os.pipe()  # the signal that a copy has ended rings it
    os.set_blocking(ended, False)
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    life, our_life = os.pipe()  # nobody writes to it; it closes when this process ends
    copies: dict[int, str] = {}
    with suppress(BrokenPipeError, ConnectionResetError):
        while True:
            ready, _, _ = select.select([owner.fileno(), ended], [], [])
            if owner.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(owner, _LARGEST, _MOST_DESCRIPTORS)
                if not message:
                    break
                task = json.loads(message)
                if "preload" in task:
                    module.preload_more(task["preload"])
                    gc.freeze()
                    continue
                pid = os.fork()
                if pid == 0:
                    for each in (our_life, ended, bell):
                        os.close(each)
                    owner.close()
                    _become_copy(module, task["order"], descriptors, life)
                for each in descriptors:
                    os.close(each)
                copies[pid] = task["key"]
                _tell(owner, News(task["key"], pid))
            with suppress(BlockingIOError):
                os.read(ended, _LARGEST)
            for pid, code in _ended(copies):
                _tell(owner, News(copies.pop(pid), pid, code))
    _end(copies, float(grace))


def _tell(owner: socket.socket, news: News) -> None:
    owner.sendall(json.dumps(news._asdict()).encode())


def _ended(copies: Mapping[int, str]) -> list[tuple[int, int]]:
    """Process ids and exit codes of the copies that are over."""
    found = []
    for pid in copies:
        reaped, status = os.waitpid(pid, os.WNOHANG)
        if reaped:
            found.append((pid, os.waitstatus_to_exitcode(status)))
    return found


def _end(copies: dict[int, str], grace: float) -> None:
    until = time.monotonic() + grace
    while copies and time.monotonic() < until:
        for pid, _ in _ended(copies):
            del copies[pid]
        time.sleep(0.05)
    for pid in copies:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _become_copy(
    module: ModuleType, order: dict[str, Any], descriptors: Sequence[int], life: int
) -> NoReturn:
    """In the copy: a session and an output of its own, then the order."""
    code = 1
    try:
        os.setsid()  # so that it can be killed with all that it may start
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output, *rest = descriptors
        for target in (1, 2):
            os.dup2(output, target)
        os.close(output)
        threading.Thread(target=end_with, args=(life,), daemon=True).start()
        code = module.main(order, rest)
    except BaseException:
        traceback.print_exc()
    leave(code)


if __name__ == "__main__":
    main()
