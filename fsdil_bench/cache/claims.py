"""Who computes what: claims on the keys of a cache, between processes and threads.

A key is one byte of a lock file, far out at the key's hash; a claim is a POSIX lock on that byte.
The system takes such locks from a process that ends, however it ends, so that no claim outlives
its owner. A process that waits for others holds no claim itself, so that none waits in a circle.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from fsdil_bench.system.posix import require_posix

require_posix("the cache that runs share")
import fcntl  # noqa: E402

_IN_USE = 0  # a byte that everybody who uses the file holds together
_REPLACING = 1  # a byte for whoever opens or replaces the file, one at a time
_FIRST_KEY = 2


class Claims:
    """The claims on the keys of one file; `claims_at` makes them.

    One object, and one open lock file, serve a whole process: the system would drop all its locks
    as soon as it closed the file a second time.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._mutex = threading.Lock()
        self._held: set[int] = set()
        fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _IN_USE)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def take(self, keys: Iterator[str], most: int) -> list[str]:
        """Claim the next of `keys`, up to `most`, that nobody else holds; pass over the others."""
        taken: list[str] = []
        while len(taken) < most and (key := next(keys, None)) is not None:
            with self._mutex:
                place = _place(key)
                if place not in self._held and _locked(self._file, place):
                    self._held.add(place)
                    taken.append(key)
        return taken

    def release(self, keys: Iterable[str]) -> None:
        """Give claims back."""
        with self._mutex:
            for key in keys:
                self._held.discard(_place(key))
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(key))

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Be the only one to open or replace the file that the claims are about."""
        with self._mutex:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _REPLACING)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _REPLACING)


_known: WeakValueDictionary[Path, Claims] = WeakValueDictionary()
_known_mutex = threading.Lock()


def _forget() -> None:
    """In a forked process: claims stay with the process that made them."""
    global _known_mutex
    _known_mutex = threading.Lock()
    _known.clear()


os.register_at_fork(after_in_child=_forget)


def claims_at(path: Path) -> Claims:
    """The claims kept in this lock file; OSError where it cannot be made or locked."""
    path = path.absolute()
    with _known_mutex:
        found = _known.get(path)
        if found is None or not path.exists():
            found = _known[path] = Claims(path)
        return found


@contextmanager
def unless_in_use(path: Path) -> Iterator[bool]:
    """Whether no other process uses what this lock file is about; none begins to meanwhile."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _locked(file, _IN_USE)
    finally:
        os.close(file)


def _locked(file: int, place: int) -> bool:
    """Try to lock one byte."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):  # held by another process
            return False
        raise
    return True


def _place(key: str) -> int:
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return _FIRST_KEY + (int.from_bytes(digest, "big") >> 2)
