"""One SQLite file of arrays, which other processes may write, replace or remove at any time.

A damaged file is put aside as `*.damaged` and a new one started. A damaged entry counts as missing.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .claims import Claims, claims_at

_BUSY = 30  # seconds to wait for another process' reading or writing, which takes milliseconds
_LOOK = 0.2  # seconds between two checks whether the open file is still the one at its path
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS arrays "
    "(key TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB, crc INTEGER)",
    # Times of use and sizes have their own table, so that noting a use does not rewrite arrays.
    "CREATE TABLE IF NOT EXISTS uses (key TEXT PRIMARY KEY, at REAL, bytes INTEGER) WITHOUT ROWID",
)

#: A key, and the type, shape, bytes and checksum of its array.
Entry = tuple[Any, Any, Any, Any, Any]
Result = TypeVar("Result")


class UnusableFileError(Exception):
    """The file can be neither read nor written."""


class ArrayFile:
    """The open file. Every access goes through `use`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection: sqlite3.Connection | None = None
        self.claims: Claims | None = None  # none where the folder may only be read
        self._identity: tuple[int, int] | None = None
        self._looked = 0.0

    def use(self, action: Callable[[], Result], *, look: bool) -> Result:
        """The result of `action`; if the file turns out damaged, it is replaced first.

        `look`: check at once that the file was not replaced or removed, however often that is.
        """
        try:
            self._follow(look)
            return action()
        except OSError as error:
            raise UnusableFileError(str(error)) from error
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            damage = error
        try:
            self.open(damage)
            return action()
        except (sqlite3.DatabaseError, OSError) as error:
            raise UnusableFileError(str(error)) from error

    def open(self, damage: Exception | None = None) -> None:
        """Open the file: a new one if there is none, or if it is known to be damaged."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.claims = claims_at(self.path.with_suffix(".lock"))
        except OSError:
            if damage is not None or not self.path.is_file():
                raise
            self._connect(read_only=True)  # a folder that may not be written can be read
            return
        with self.claims.replacing():
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

    def close(self) -> None:
        """Close the file; nothing is found in it from now on."""
        if self.connection is not None:
            self.connection.close()
        self.connection = self.claims = None

    def read(self, keys: list[str]) -> list[Entry]:
        """The entries of `keys`, as far as there are any."""
        if self.connection is None:
            return []
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, dtype, shape, data, crc FROM arrays WHERE key IN ({marks})"
        try:
            return self.connection.execute(query, keys).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            # Damaged text is not UTF-8. The other entries must still be found.
            self.connection.text_factory = lambda text: text.decode(errors="replace")
            return self.connection.execute(query, keys).fetchall()

    def count(self) -> int:
        """How many arrays the file holds."""
        if self.connection is None:
            return 0
        return int(self.connection.execute("SELECT COUNT(*) FROM arrays").fetchone()[0])

    def write(self, entries: list[Entry]) -> bool:
        """Store all entries or none; returns whether the file is open."""
        if self.connection is None:
            return False
        uses = [(key, time.time(), len(data)) for key, _, _, data, _ in entries]
        with self.connection as connection:
            connection.executemany("INSERT OR REPLACE INTO arrays VALUES (?,?,?,?,?)", entries)
            connection.executemany("INSERT OR REPLACE INTO uses VALUES (?,?,?)", uses)
        return True

    def note_use(self, keys: Iterable[str]) -> None:
        """Note that entries are used now, so that they are evicted later than unused ones."""
        if self.connection is None:
            return
        now = time.time()
        uses = [(now, key) for key in keys]
        with self.connection as connection:
            connection.executemany("UPDATE uses SET at = ? WHERE key = ?", uses)

    def _follow(self, look: bool) -> None:
        """Open the file again if it was replaced or removed since."""
        now = time.monotonic()
        if self.connection is None or (not look and now - self._looked < _LOOK):
            return
        self._looked = now
        if _identity(self.path) != self._identity:
            self.connection.close()
            self.open()

    def _connect(self, *, read_only: bool = False) -> None:
        mode = "ro" if read_only else "rwc"
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, timeout=_BUSY, check_same_thread=False, uri=True)
        self.connection = connection
        connection.execute("PRAGMA synchronous=OFF")  # a cache may lose its last entries
        if not read_only:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that the file can shrink
            with connection:
                for table in _TABLES:
                    connection.execute(table)
        self._identity = _identity(self.path)

    def _put_aside(self, damage: Exception) -> None:
        warn(f"cache {self.path} is damaged ({damage}); it is built again")
        if self.connection is not None:
            self.connection.close()
        self.path.replace(self.path.with_suffix(".damaged"))
        self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)


def encode(arrays: Mapping[str, np.ndarray]) -> list[Entry]:
    """Arrays as entries of a file."""
    entries: list[Entry] = []
    for key, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        shape = ",".join(str(n) for n in array.shape)
        entries.append((key, array.dtype.str, shape, data, zlib.crc32(data)))
    return entries


def decode(entries: Iterable[Entry]) -> dict[str, np.ndarray]:
    """The arrays of entries; damaged ones are left out."""
    arrays = {key: _checked(*entry) for key, *entry in entries}
    return {key: array for key, array in arrays.items() if array is not None}


def warn(text: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {text}", file=sys.stderr)


def _checked(dtype: Any, shape: Any, data: Any, crc: Any) -> np.ndarray | None:
    """The array of an entry; None if any part of it is damaged."""
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
    """Which file is at a path; a file that replaces it has a different identity."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - called at every look-up
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
