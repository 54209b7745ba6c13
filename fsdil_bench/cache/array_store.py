"""Arrays on disk by key: the cache for frozen features, text embeddings and decoded images.

One SQLite file per kind of array (`array_file`), so that many processes can read and write it, a
killed process leaves nothing half-written, and a look-up of thousands of keys is fast. `fill`
computes missing arrays; processes that need the same ones share the work (`claims`).

A cache that cannot be used (no locks, no room, no permission) costs one warning: what is computed
is then kept in memory, up to a limit. `FSDIL_CACHE_LIMIT` bounds the size of all files together
(`eviction`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from .array_file import ArrayFile, Result, UnusableFileError, decode, encode, warn
from .claims import ClaimedKeys
from .eviction import cache_limit, evict

#: Computes arrays: takes parts of the keys one after the other, returns the arrays of each.
Compute = Callable[[Iterator[list[str]]], Iterable[dict[str, np.ndarray]]]

_CHUNK = 500  # keys per query, below SQLite's limit on variables
_PATIENCE = 120  # seconds without news after which keys that others claimed are computed here too
_UNSAVED_LIMIT = 1 << 30  # bytes kept in memory where nothing can be written

_warned: set[Path] = set()  # folders that cannot be used: one warning each


class ArrayStore:
    """A persistent mapping from text keys to NumPy arrays, for any number of threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._limit = cache_limit()
        self._mutex = threading.RLock()
        self._file = ArrayFile(path)
        self._writable = True
        self._noted: set[str] = set()  # keys whose use was noted in the file
        self._unsaved: dict[str, np.ndarray] = {}
        self._unsaved_bytes = 0
        self._use(self._file.open)

    def get(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """The arrays known for `keys`; missing and damaged ones are left out."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            found.update(decode(self._use(partial(self._file.read, chunk)) or ()))
        if self._unsaved:
            found.update({key: self._unsaved[key] for key in wanted if key in self._unsaved})
        if self._limit and found:
            self._note_use(found)
        return found

    def put(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Store `arrays`, all of them or none; a full disk costs the cache, not the run."""
        saved = self._writable and self._use(
            partial(self._file.write, encode(arrays)), writing=True
        )
        if not saved:
            self._keep_unsaved(arrays)
        elif self._limit:
            evict(self.path.parent, self._limit)

    def fill(self, keys: Sequence[str], compute: Compute, size: int) -> dict[str, np.ndarray]:
        """The arrays of all `keys`; those that are missing are computed and stored.

        `compute` is given the missing keys in parts of up to `size`. A part is claimed when it is
        asked for, so that processes that need the same keys share the work: each takes keys that
        nobody has claimed, and in the end waits for what the other processes have not finished.
        The claims of a killed process are free at once.
        """
        known = self.get(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        news, pause = time.monotonic(), 0.002
        while missing:
            hopeless = time.monotonic() - news > _PATIENCE  # who claimed the rest seems to hang
            with ClaimedKeys(None if hopeless else self._file.claims) as claimed:
                for fresh in compute(self._parts(missing, size, known, claimed)):
                    self.put(fresh)
                    known.update(fresh)
                    claimed.release(fresh)
            before, missing = len(missing), [key for key in missing if key not in known]
            if len(missing) < before:
                news, pause = time.monotonic(), 0.002
            elif missing:
                time.sleep(pause)
                pause = min(2 * pause, 0.2)
                known.update(self.get(missing))
        return known

    def __len__(self) -> int:
        return (self._use(self._file.count) or 0) + len(self._unsaved)

    def close(self) -> None:
        """Release the file."""
        with self._mutex:
            self._file.close()

    def _parts(
        self, missing: list[str], size: int, known: dict[str, np.ndarray], claimed: ClaimedKeys
    ) -> Iterator[list[str]]:
        """Parts of `missing` to compute here, each claimed when it is asked for."""
        rest = iter(missing)
        while part := claimed.take(rest, size):
            done = self.get(part)  # another process has stored them in the meantime
            known.update(done)
            claimed.release(done)
            if len(done) < len(part):
                yield [key for key in part if key not in done]

    def _use(self, action: Callable[[], Result], *, writing: bool = False) -> Result | None:
        """Do something with the file; None where that is not possible."""
        with self._mutex:
            try:
                return self._file.use(action, look=writing)
            except UnusableFileError as error:
                self._stop(error)
            except sqlite3.DatabaseError as error:
                self._stop(error, only_writing=writing)
            return None

    def _stop(self, error: Exception, *, only_writing: bool = False) -> None:
        """Do without the file from now on, or without writing to it."""
        self._writable = False
        if not only_writing:
            self._file.close()
        if self.path.parent not in _warned:
            _warned.add(self.path.parent)
            what = "written" if only_writing else "used"
            warn(
                f"cache {self.path} cannot be {what} ({error}); "
                "continuing without it: nothing is cached in this run"
            )

    def _keep_unsaved(self, arrays: Mapping[str, np.ndarray]) -> None:
        with self._mutex:
            for key, array in arrays.items():
                if self._unsaved_bytes + array.nbytes <= _UNSAVED_LIMIT:
                    self._unsaved[key] = array
                    self._unsaved_bytes += array.nbytes

    def _note_use(self, keys: Iterable[str]) -> None:
        """Note uses for eviction, once per run and key."""
        fresh = [key for key in keys if key not in self._noted]
        if fresh and self._writable:
            self._use(partial(self._file.note_use, fresh), writing=True)
        self._noted.update(fresh)
