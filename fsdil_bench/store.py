"""Arrays on disk by key: the cache for frozen features, text embeddings and decoded images.

One SQLite file per kind of array, so that many processes may read and write it, a killed one
leaves nothing half-written, and a look-up of thousands of keys is fast. Every entry carries a
checksum; a damaged entry counts as missing, a damaged file is put aside and begun anew.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import platformdirs

_CHUNK = 500  # keys per query, below SQLite's limit on variables


def cache_folder() -> Path:
    """Where caches live: `FSDIL_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("FSDIL_CACHE") or platformdirs.user_cache_dir("fsdil-bench"))


class ArrayStore:
    """A persistent mapping from text keys to NumPy arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open(path)
        except (OSError, sqlite3.OperationalError) as error:
            _warn(f"cache {path} cannot be used ({error}); nothing is cached in this run")
            self._open(":memory:")
        except sqlite3.DatabaseError as error:
            self._begin_anew(error)

    def get(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """The arrays known for `keys`; missing and damaged ones are left out."""
        wanted, found = list(keys), {}
        try:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT key, dtype, shape, data, crc FROM arrays WHERE key IN ({marks})"
                for key, dtype, shape, data, crc in self._connection.execute(query, chunk):
                    if zlib.crc32(data) == crc:
                        size = tuple(int(n) for n in shape.split(",") if n)
                        found[key] = np.frombuffer(data, dtype=dtype).reshape(size)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._begin_anew(error)
        return found

    def put(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Store `arrays`, all of them or none; a full disk costs the cache, not the run."""
        rows = []
        for key, array in arrays.items():
            data = np.ascontiguousarray(array).tobytes()
            shape = ",".join(str(n) for n in array.shape)
            rows.append((key, array.dtype.str, shape, data, zlib.crc32(data)))
        try:
            with self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO arrays VALUES (?,?,?,?,?)", rows
                )
        except sqlite3.OperationalError as error:
            _warn(f"cache {self.path} cannot be written ({error}); going on without")

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT COUNT(*) FROM arrays").fetchone()[0])

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _open(self, path: Path | str) -> None:
        self._connection = sqlite3.connect(path, timeout=120, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous=OFF")  # a cache may lose its last entries
        with self._connection:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS arrays "
                "(key TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB, crc INTEGER)"
            )

    def _begin_anew(self, error: Exception) -> None:
        _warn(f"cache {self.path} is damaged ({error}); it is rebuilt")
        self._connection.close()
        self.path.replace(self.path.with_suffix(".damaged"))
        self._open(self.path)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
