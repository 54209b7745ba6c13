"""Processes that start cold, as a stand-in for the fork server where no process can be forked.

Every process is a new interpreter that runs a module; it is told its file descriptors as
arguments.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from .fork_server import News, received


class FreshInterpreters:
    """Starts processes as `ForkServer` does."""

    def __init__(
        self,
        module: str,
        *,
        environment: Mapping[str, str],
        command: Sequence[str] = (sys.executable,),
        folder: str | None = None,
    ) -> None:
        self.connection, self._ours = socket.socketpair(type=socket.SOCK_DGRAM)
        self._module = module
        self._environment = environment
        self._command = command
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, key: str, output: int, *descriptors: int) -> None:
        """Start a process that prints to `output` and holds these file descriptors."""
        process = subprocess.Popen(
            [*self._command, "-m", self._module, *map(str, descriptors)],
            pass_fds=descriptors,
            cwd=self._folder,
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._processes = [each for each in self._processes if each.returncode is None]
        self._processes.append(process)
        self._tell(News(key, process.pid))
        threading.Thread(target=self._wait, args=(key, process), daemon=True).start()

    def preload_more(self, names: Iterable[str]) -> None:
        """Nothing can be imported beforehand."""

    def news(self, timeout: float | None = 0) -> list[News]:
        """What has happened since the last call."""
        return received(self.connection, timeout)

    def close(self) -> None:
        """Kill the processes that are still there."""
        self.connection.close()
        self._ours.close()
        for process in self._processes:
            process.kill()
            process.wait()

    def _wait(self, key: str, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        with suppress(OSError):  # nobody listens any more
            self._tell(News(key, process.pid, code))

    def _tell(self, news: News) -> None:
        self._ours.sendall(json.dumps(news._asdict()).encode())
