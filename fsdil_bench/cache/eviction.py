"""The limit on the size of the cache: what was used longest ago goes first.

`FSDIL_CACHE_LIMIT` (`20GB`, `500MB`, a number of bytes) bounds the files of arrays in the cache
folder together; without it there is no limit. Entries are deleted in transactions and the files
made smaller: a process that reads at the same time finds an entry or does not.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from fsdil_bench.errors import RequestError
from fsdil_bench.system.locks import locked

_UNITS = {"": 1} | {
    letter + binary: base**power
    for power, letter in enumerate("KMGT", 1)
    for binary, base in (("", 1000), ("I", 1024))
}
_TARGET = 0.9  # of the limit is left, so that not every new entry evicts another
_ROUNDS = 3  # of eviction, where others store faster than this
_BUSY = 10  # seconds to wait for a file that other processes read or write


def cache_limit() -> int | None:
    """The limit in bytes that `FSDIL_CACHE_LIMIT` sets; None for no limit."""
    text = os.environ.get("FSDIL_CACHE_LIMIT", "").strip()
    if not text:
        return None
    match = re.fullmatch(r"(\d+\.?\d*)\s*((?:[KMGT]I?)?)B?", text.upper())
    if match is None:
        raise RequestError(
            f"FSDIL_CACHE_LIMIT is '{text}', which is no size", "Write it like 20GB or 500MB."
        )
    return int(float(match[1]) * _UNITS[match[2]])


def array_files(folder: Path) -> dict[Path, int]:
    """The files of arrays in a cache folder and their sizes."""
    sizes = {}
    for pattern in ("features-*.sqlite", "pictures-*.sqlite", "texts-*.sqlite"):
        for path in folder.glob(pattern):
            with suppress(OSError):
                sizes[path] = path.stat().st_size
    return sizes


def evict(folder: Path, limit: int) -> None:
    """Delete the entries used longest ago if the files are larger than `limit` together.

    One process does this at a time; the other processes do not wait for it. What they have stored
    in the meantime is looked at again, a few times at most.
    """
    if sum(array_files(folder).values()) <= limit:
        return
    with suppress(OSError, sqlite3.Error), locked(folder / "eviction.lock", 0) as alone:
        for _ in range(_ROUNDS if alone else 0):
            files = array_files(folder)
            if sum(files.values()) <= limit:
                break
            _shrink(files, int(_TARGET * limit))


def _shrink(files: dict[Path, int], target: int) -> None:
    """Delete the oldest entries of all files until they have the size `target`."""
    ages: list[tuple[float, float]] = []
    for path, size in files.items():
        with suppress(sqlite3.Error), closing(_open(path)) as connection:
            ages += _ages(connection, size)
    excess: float = sum(files.values()) - target
    last = 0.0
    for at, share in sorted(ages):
        if excess <= 0:
            break
        excess, last = excess - share, at
    for path in files:
        with suppress(sqlite3.Error), closing(_open(path)) as connection:
            _delete(connection, last)


def _ages(connection: sqlite3.Connection, size: int) -> list[tuple[float, float]]:
    """When entries were last used, and their share of the file's `size`."""
    # Entries from before uses were noted are the oldest, in the order of their coming.
    connection.execute(
        "INSERT OR IGNORE INTO uses SELECT key, rowid / 100, length(data) FROM arrays "
        "WHERE key NOT IN (SELECT key FROM uses)"
    )
    groups = connection.execute("SELECT at, SUM(bytes) FROM uses GROUP BY at").fetchall()
    share = size / max(1, sum(total for _, total in groups))
    return [(at, total * share) for at, total in groups]


def _delete(connection: sqlite3.Connection, last: float) -> None:
    """Delete what was not used after `last`, and give the room back to the system."""
    connection.execute("BEGIN IMMEDIATE")
    keys = "SELECT key FROM uses WHERE at <= ?"
    gone = connection.execute(f"DELETE FROM arrays WHERE key IN ({keys})", (last,)).rowcount
    connection.execute("DELETE FROM uses WHERE at <= ?", (last,))
    connection.execute("COMMIT")
    if gone:
        give_back_room(connection)


def give_back_room(connection: sqlite3.Connection) -> None:
    """Cut the pages off the file that no entry needs any more."""
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0]:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would cut a single page
    else:  # a file made before it could be cut; from now on it can
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("VACUUM")


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    return connection
