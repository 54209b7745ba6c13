"""What is in the cache folder, and clearing it, also while runs use it.

Only what this project puts there is looked at: `FSDIL_CACHE` may name a folder that holds other
things as well.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.errors import FsdilError, RequestError

from .claims import unless_in_use
from .eviction import give_back_room

#: Kinds of cached things: the pattern of their files, and what they are.
KINDS = {
    "features": ("features-*.sqlite", "frozen features of images"),
    "texts": ("texts-*.sqlite", "embeddings of texts"),
    "pictures": ("pictures-*.sqlite", "pictures drawn by code"),
    "hashes": ("*-hashes.sqlite", "hashes of weights and of images"),
    "bases": ("bases", "base domains for run --reuse-base"),
    "listings": ("complete", "data sets found complete"),
    "models": ("open-clip-*.json", "names of open_clip's models"),
    "forecasts": ("forecast", "rehearsals and speeds for forecasts"),
    "damaged": ("*.damaged", "damaged files put aside"),
}


@dataclass(frozen=True)
class CacheFile:
    """A file (or folder) of the cache; `entries` only where it has any."""

    path: Path
    kind: str
    bytes: int
    entries: int | None = None


def cache_files(folder: Path) -> Iterator[CacheFile]:
    """Everything that is cached, kind by kind."""
    for kind, (pattern, _) in KINDS.items():
        for path in sorted(folder.glob(pattern)):
            with suppress(OSError):  # removed in the meantime
                yield CacheFile(path, kind, _size(path), _entries(path))


def clear(folder: Path, kind: str | None = None) -> list[CacheFile]:
    """Remove everything, or one kind; what was removed.

    Current runs only have to compute again: a file that is in use is emptied and stays.
    """
    if kind is not None and kind not in KINDS:
        raise RequestError(f"the cache has no kind '{kind}'", f"Kinds are: {', '.join(KINDS)}.")
    removed = [found for found in cache_files(folder) if kind in (None, found.kind)]
    for found in removed:
        try:
            _remove(found.path)
        except (OSError, sqlite3.Error) as error:
            raise FsdilError(
                f"{found.path} cannot be removed: {error}", "Remove the file by hand."
            ) from error
    return removed


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.suffix == ".sqlite":
        _remove_store(path)
    else:
        path.unlink(missing_ok=True)


def _remove_store(path: Path) -> None:
    lock = path.with_suffix(".lock")
    with unless_in_use(lock) as unused:
        if unused:
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
            return
    # Removing a database while it is used could mix up its journal with that of a new one.
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("DELETE FROM arrays")
        connection.execute("DELETE FROM uses")
        give_back_room(connection)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size


def _entries(path: Path) -> int | None:
    if path.is_dir():
        return sum(1 for _ in path.iterdir())
    if path.suffix != ".sqlite":
        return None
    with suppress(sqlite3.Error):
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, timeout=10, uri=True)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM arrays").fetchone()[0])
    return None
