"""Arrays on disk by key: the cache for frozen features, text embeddings and decoded images.

One SQLite file per kind of array, so that many processes may read and write it, a killed one
leaves nothing half-written, and a look-up of thousands of keys is fast. `fill` has every missing
array computed by one process only (`fsdil_bench.cache.claims`).

Every entry carries a checksum; a damaged entry counts as missing and is replaced, a damaged file is
put aside and begun anew. A cache that cannot be used (no locks, no room, no permission) costs one
warning: what is computed is then kept in memory, up to a limit. `FSDIL_CACHE_LIMIT` bounds the size
of all files together (`fsdil_bench.cache.eviction`).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from .claims import Claims, claims_at
from .eviction import cache_limit, evict

#: Computes arrays: takes parts of the keys one after the other, gives their arrays.
Compute = Callable[[Iterator[list[str]]], Iterable[dict[str, np.ndarray]]]

_CHUNK = 500  # keys per query, below SQLite's limit on variables
_BUSY = 30  # seconds to wait for another process' reading or writing, which takes milliseconds
_PATIENCE = 120  # seconds without any news after which the keys of others are computed here too
_LOOK = 0.2  # seconds between two looks whether the file that is read is still the one of its name
_UNSAVED_LIMIT = 1 << 30  # bytes kept in memory where nothing can be written
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS arrays "
    "(key TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB, crc INTEGER)",
    # When and how large: apart from the arrays, so that noting a use does not rewrite them.
    "CREATE TABLE IF NOT EXISTS uses (key TEXT PRIMARY KEY, at REAL, bytes INTEGER) WITHOUT ROWID",
)

_warned: set[Path] = set()  # folders that cannot be used: one warning each


def cache_folder() -> Path:
    """Where caches live: `FSDIL_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("FSDIL_CACHE") or platformdirs.user_cache_dir("fsdil-bench"))


class ArrayStore:
    """A persistent mapping from text keys to NumPy arrays, for any number of threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._limit = cache_limit()
        self._mutex = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._claims: Claims | None = None
        self._identity: tuple[int, int] | None = None
        self._looked = 0.0
        self._writable = True
        self._noted: set[str] = set()  # keys whose use is on record
        self._unsaved: dict[str, np.ndarray] = {}
        self._unsaved_bytes = 0
        self._use(self._open, reading=True)

    def get(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """The arrays known for `keys`; missing and damaged ones are left out."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            rows = self._use(partial(self._rows, chunk), reading=True)
            for key, dtype, shape, data, crc in rows or ():
                array = _checked(dtype, shape, data, crc)
                if array is not None:
                    found[key] = array
        if self._unsaved:
            found.update({key: self._unsaved[key] for key in wanted if key in self._unsaved})
        if self._limit and found:
            self._note_use(found)
        return found

    def put(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Store `arrays`, all of them or none; a full disk costs the cache, not the run."""
        entries, uses = [], []
        for key, array in arrays.items():
            data = np.ascontiguousarray(array).tobytes()
            shape = ",".join(str(n) for n in array.shape)
            entries.append((key, array.dtype.str, shape, data, zlib.crc32(data)))
            uses.append((key, time.time(), len(data)))
        if not self._use(partial(self._write, entries, uses), reading=False):
            self._keep_unsaved(arrays)
        elif self._limit:
            evict(self.path.parent, self._limit)

    def fill(self, keys: Sequence[str], compute: Compute, size: int) -> dict[str, np.ndarray]:
        """The arrays of all `keys`; those that are missing are computed and stored.

        `compute` is given the missing keys in parts of up to `size`. A part is claimed when it is
        asked for, so that processes that want the same keys share the work: each takes parts that
        nobody has, and in the end waits for what others have not finished. What a killed process
        had claimed is free at once.
        """
        known = self.get(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        news, pause = time.monotonic(), 0.002
        while missing:
            hopeless = time.monotonic() - news > _PATIENCE  # whoever has the rest seems to hang
            with _Share(None if hopeless else self._claims) as share:
                for fresh in compute(self._parts(missing, size, known, share)):
                    self.put(fresh)
                    known.update(fresh)
                    share.release(fresh)
            before, missing = len(missing), [key for key in missing if key not in known]
            if len(missing) < before:
                news, pause = time.monotonic(), 0.002
            elif missing:
                time.sleep(pause)
                pause = min(2 * pause, 0.2)
                known.update(self.get(missing))
        return known

    def __len__(self) -> int:
        count = self._use(self._count, reading=True) or 0
        return int(count) + len(self._unsaved)

    def close(self) -> None:
        """Release the file."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._claims = None

    def _parts(
        self, missing: list[str], size: int, known: dict[str, np.ndarray], share: _Share
    ) -> Iterator[list[str]]:
        """Parts of `missing` to compute here, each claimed when it is asked for."""
        rest = iter(missing)
        while part := share.take(rest, size):
            done = self.get(part)  # by another process, since this one looked
            known.update(done)
            share.release(done)
            if len(done) < len(part):
                yield [key for key in part if key not in done]

    def _use(self, action: Callable[[], Any], *, reading: bool) -> Any:
        """Do something with the file; nothing (None) where that is not possible.

        A damaged file is replaced and the action tried once more.
        """
        with self._mutex:
            try:
                self._follow(reading)
                return action()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    self._stop(error, reading)
                    return None
                damage = error
            except OSError as error:
                self._stop(error, reading=True)
                return None
            try:
                self._open(damage)
                return action()
            except (sqlite3.DatabaseError, OSError) as error:
                self._stop(error, reading=True)
                return None

    def _stop(self, error: Exception, reading: bool) -> None:
        """Do without the file from now on, or, if it can be read, without writing."""
        self._writable = False
        if reading:
            self.close()
        if self.path.parent not in _warned:
            _warned.add(self.path.parent)
            what = "be used" if reading else "be written"
            _warn(
                f"cache {self.path} cannot {what} ({error}); "
                "going on without: nothing is cached in this run"
            )

    def _follow(self, reading: bool) -> None:
        """Open the file again if it was replaced or removed since."""
        now = time.monotonic()
        if self._connection is None or (reading and now - self._looked < _LOOK):
            return
        self._looked = now
        if _identity(self.path) != self._identity:
            self._connection.close()
            self._open()

    def _open(self, damage: Exception | None = None) -> None:
        """Open the file: a new one if there is none, or if `damage` has shown in it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._claims = claims_at(self.path.with_suffix(".lock"))
        except OSError:
            if damage is not None or not self.path.is_file():
                raise
            self._connect(read_only=True)  # a folder that may not be written is read
            return
        with self._claims.replacing():
            # Another process may have replaced a damaged file already.
            if damage is not None and _identity(self.path) == self._identity:
                self._put_aside(damage)
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._put_aside(error)
                self._connect()

    def _connect(self, *, read_only: bool = False) -> None:
        mode = "ro" if read_only else "rwc"
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, timeout=_BUSY, check_same_thread=False, uri=True)
        self._connection = connection
        connection.execute("PRAGMA synchronous=OFF")  # a cache may lose its last entries
        if not read_only:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that the file can shrink
            with connection:
                for table in _TABLES:
                    connection.execute(table)
        self._identity = _identity(self.path)

    def _put_aside(self, damage: Exception) -> None:
        _warn(f"cache {self.path} is damaged ({damage}); it is rebuilt")
        if self._connection is not None:
            self._connection.close()
        self.path.replace(self.path.with_suffix(".damaged"))
        self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)

    def _rows(self, keys: list[str]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, dtype, shape, data, crc FROM arrays WHERE key IN ({marks})"
        try:
            return self._connection.execute(query, keys).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            # Damaged text is no UTF-8: such an entry must not cost the others.
            self._connection.text_factory = lambda text: text.decode(errors="replace")
            return self._connection.execute(query, keys).fetchall()

    def _count(self) -> int:
        if self._connection is None:
            return 0
        return int(self._connection.execute("SELECT COUNT(*) FROM arrays").fetchone()[0])

    def _write(self, entries: list[tuple[Any, ...]], uses: list[tuple[Any, ...]]) -> bool:
        if self._connection is None or not self._writable:
            return False
        with self._connection as connection:
            connection.executemany("INSERT OR REPLACE INTO arrays VALUES (?,?,?,?,?)", entries)
            connection.executemany("INSERT OR REPLACE INTO uses VALUES (?,?,?)", uses)
        return True

    def _keep_unsaved(self, arrays: Mapping[str, np.ndarray]) -> None:
        with self._mutex:
            for key, array in arrays.items():
                if self._unsaved_bytes + array.nbytes <= _UNSAVED_LIMIT:
                    self._unsaved[key] = array
                    self._unsaved_bytes += array.nbytes

    def _note_use(self, keys: Iterable[str]) -> None:
        """Remember that entries were used, once per run, so that others are evicted first."""
        fresh = [key for key in keys if key not in self._noted]
        now = time.time()

        def note() -> None:
            if fresh and self._connection is not None and self._writable:
                with self._connection as connection:
                    connection.executemany(
                        "UPDATE uses SET at = ? WHERE key = ?", [(now, key) for key in fresh]
                    )

        self._use(note, reading=False)
        self._noted.update(fresh)


class _Share:
    """The claims that are held in one go of `fill`; without claims, everything is free."""

    def __init__(self, claims: Claims | None) -> None:
        self._claims = claims
        self._held: set[str] = set()

    def __enter__(self) -> _Share:
        return self

    def __exit__(self, *_: object) -> None:
        self.release(list(self._held))

    def take(self, keys: Iterator[str], most: int) -> list[str]:
        if self._claims is None:
            return list(islice(keys, most))
        taken = self._claims.take(keys, most)
        self._held.update(taken)
        return taken

    def release(self, keys: Iterable[str]) -> None:
        mine = self._held.intersection(keys)
        if mine and self._claims is not None:
            self._claims.release(mine)
            self._held -= mine


def _checked(dtype: Any, shape: Any, data: Any, crc: Any) -> np.ndarray | None:
    """The array of an entry; nothing if any part of it is damaged."""
    try:
        if zlib.crc32(data) != crc:
            return None
        return np.frombuffer(data, dtype=dtype).reshape([int(n) for n in shape.split(",") if n])
    except (TypeError, ValueError, AttributeError, SyntaxError):
        return None


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether a file is broken, rather than busy, full or out of reach."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a name stands for; a file put in its place has another identity."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - asked at every look-up
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
