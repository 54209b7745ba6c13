"""Locks between processes: one file, one holder. A lock ends with the process that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_PAUSE = 0.005  # seconds between two tries


@contextmanager
def locked(path: Path, patience: float = 0.2) -> Iterator[bool]:
    """Hold the lock of this file, and say whether it could be had; OSError where there can be none.

    `patience` is in seconds: whoever only asks about a lock (`is_locked`) has it for a moment.
    """
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=patience, poll_interval=_PAUSE)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of this file; not where the file cannot be opened.

    Others may ask at the same moment, so a lock counts as held when it is so for some tries.
    """
    try:
        if path.exists():
            with locked(path, patience=10 * _PAUSE) as free:
                return not free
    except OSError:
        pass
    return False
