"""Who computes what: claims on the keys of a cache file, between processes and threads.

A claim is a POSIX lock on one byte of a lock file; the hash of the key says which byte. One open
file is enough for any number of claims. A lock file per key would not do: a process claims several
hundred keys at a time, each would be an open file, and systems allow about a thousand.

The system frees the locks of a process that ends, however it ends, so no claim outlives its owner.
A process that waits for other processes holds no claim itself, so there is no deadlock.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from weakref import WeakValueDictionary

from fsdil_bench.system.posix import require_posix

require_posix("the cache that runs share")
import fcntl  # noqa: E402

_IN_USE = 0  # the byte that all who use the cache file lock together
_REPLACING = 1  # the byte that whoever opens or replaces the cache file locks alone
_FIRST_KEY = 2  # from here on, bytes stand for keys


class Claims:
    """The claims of this process on the keys of one cache file; `claims_at` makes them.

    There is one object, and one open lock file, per process: POSIX drops all locks that a process
    has on a file as soon as it closes the file once.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._mutex = threading.Lock()
        self._held: set[int] = set()  # POSIX locks are shared by threads; these are not
        fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _IN_USE)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def take(self, keys: Iterator[str], most: int) -> list[str]:
        """Claim the next of `keys`, up to `most`; those that are claimed already are skipped."""
        taken: list[str] = []
        while len(taken) < most and (key := next(keys, None)) is not None:
            with self._mutex:
                place = _byte_of(key)
                if place not in self._held and _locked(self._file, place):
                    self._held.add(place)
                    taken.append(key)
        return taken

    def release(self, keys: Iterable[str]) -> None:
        """Give claims back."""
        with self._mutex:
            for key in keys:
                place = _byte_of(key)
                self._held.discard(place)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Be the only one to open or replace the cache file."""
        with self._mutex:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _REPLACING)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _REPLACING)


class ClaimedKeys:
    """The keys claimed in a `with` block, given back at its end; without claims, all are free."""

    def __init__(self, claims: Claims | None) -> None:
        self._claims = claims
        self._keys: set[str] = set()

    def __enter__(self) -> ClaimedKeys:
        return self

    def __exit__(self, *_: object) -> None:
        self.release(list(self._keys))

    def take(self, keys: Iterator[str], most: int) -> list[str]:
        """See `Claims.take`."""
        if self._claims is None:
            return list(islice(keys, most))
        taken = self._claims.take(keys, most)
        self._keys.update(taken)
        return taken

    def release(self, keys: Iterable[str]) -> None:
        """Give back those of `keys` that are claimed here."""
        mine = self._keys.intersection(keys)
        if mine and self._claims is not None:
            self._claims.release(mine)
            self._keys -= mine


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
    """Whether no other process uses the cache file of this lock file; inside, none can start to."""
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
        if error.errno in (errno.EACCES, errno.EAGAIN):  # another process holds it
            return False
        raise
    return True


def _byte_of(key: str) -> int:
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return _FIRST_KEY + (int.from_bytes(digest, "big") >> 2)
