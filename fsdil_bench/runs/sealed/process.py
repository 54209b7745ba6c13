"""A process in which a method does one task, as the harness sees it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NamedTuple

import torch

from fsdil_bench.errors import FsdilError
from fsdil_bench.system.fork_server import News

from .server import close_server, shared_server
from .wire import Channel, Message

_GRACE = 10  # seconds within which it must be known how a process ended
_MOST_OUTPUT = 20_000  # characters of a process's output that the log keeps
_MOST_NOTES = 1 << 20  # bytes about one process

_keys = count()
_unread: dict[str, deque[News]] = defaultdict(deque)  # what the server said about each process


class Ended(NamedTuple):
    """How a process ended: its exit code, what it printed, and what was noted about it."""

    code: int | None = None
    printed: str = ""
    notes: bytes = b""


class SealedProcess:
    """A process in which a method lives for one task; `scratch` is a folder of its own."""

    def __init__(self) -> None:
        self._server = shared_server()
        self._key = str(next(_keys))
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._lost = False
        self._ended: News | None = None
        self.scratch = tempfile.mkdtemp(prefix="fsdil-sealed-")
        ours, theirs = Pipe()
        self.channel = Channel(ours)
        self._notes, their_notes = os.pipe()
        self._noted = b""
        os.set_blocking(self._notes, False)
        self._pid: int | None = None  # the server says it later; nobody waits for that here
        with suppress(OSError):
            self._server.start(self._key, self._output.fileno(), theirs.fileno(), their_notes)
        theirs.close()
        os.close(their_notes)

    def send(self, kind: str, tensors: Mapping[str, torch.Tensor], **fields: Any) -> None:
        """Send a message; a process that has died is noticed when it should answer."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(kind, tensors, **fields)

    def receive(self) -> Message | None:
        """The next message; None if the process has died."""
        connection: Connection = self.channel.connection
        if not self._begun():
            close_server()
            raise FsdilError(
                "the process that starts those of a sealed run has died",
                "The same command resumes after the last finished domain.",
            )
        self._take_notes()
        while True:
            # A process that the method started may hold the line open: ask the server, too.
            timeout = None if self._ended is None else 0
            if connection in wait([connection, self._server.connection], timeout):
                with suppress(EOFError, OSError):
                    return self.channel.receive()
                break
            if self._ended is not None or not self._read_news(0):
                break  # it has ended, or the server has
            self._next_news()
        self._lost = True
        return None

    def kill(self) -> bytes:
        """Kill the process and all it has started; what was noted about it so far.

        It takes the system a while to end it: `close` waits for that.
        """
        self.channel.close()
        if self._begun() and self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        self._take_notes()
        return self._noted

    def close(self) -> Ended:
        """End the process and all it has started, and wait until it is gone."""
        self.channel.close()
        self._news(_GRACE if self._lost else 0)
        code = self._ended.code if self._ended is not None else None
        self.kill()
        self._news(None)
        self._output.seek(0)
        printed = self._output.read().decode(errors="replace")[-_MOST_OUTPUT:]
        self._output.close()
        self._take_notes()
        os.close(self._notes)
        shutil.rmtree(self.scratch, ignore_errors=True)
        _unread.pop(self._key, None)
        return Ended(code, printed, self._noted)

    def _begun(self) -> bool:
        """Wait until the process is there; False if the server has died before."""
        if self._pid is None and (begun := self._news(None)) is not None:
            self._pid = begun.pid
        return self._pid is not None

    def _take_notes(self) -> None:
        with suppress(BlockingIOError):
            while part := os.read(self._notes, _MOST_NOTES):
                self._noted = (self._noted + part)[:_MOST_NOTES]

    def _news(self, timeout: float | None) -> News | None:
        """Wait for what the server says about this process, unless it has ended: the first news."""
        while self._ended is None:
            if (news := self._next_news()) or not self._read_news(timeout):
                return news
        return None

    def _next_news(self) -> News | None:
        unread = _unread[self._key]
        news = unread.popleft() if unread else None
        if news is not None and news.code is not None:
            self._ended = news
        return news

    def _read_news(self, timeout: float | None) -> bool:
        """Sort what the server says by process; whether it said anything."""
        news = self._server.news(timeout)
        for each in news:
            _unread[each.key].append(each)
        return bool(news)
