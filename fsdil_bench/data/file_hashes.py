"""Hashes of the bytes of files: the same wherever a folder is.

Half a million images are not read twice. The hashes of a folder's files are remembered in the cache
by the folder's path, each with the size and the times of its file: a file that is replaced gets a
later time of change, which no program can set back. So the next time costs one `stat` per file and
one query to the cache for all folders together. A file that changed a moment ago is not
remembered: within the same tick of the clock it could change once more.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.errors import DataError
from fsdil_bench.system.prefetch import default_workers, ordered_map

_PREFIX = "b2:"  # of every hash, so that it cannot be mistaken for a name
_SETTLED = 2_000_000_000  # ns after which a further change of a file gets a different time
_GROUP = 64  # files that a thread reads at a time
_SAVED = 20_000  # files read between two writes to the cache: what a killed process may lose
_LONG = 10.0  # seconds after which the user is told what happens, and again every so often

#: What is remembered of the files of a folder, by name: `<size> <time> <time of change> <hash>`.
_Entries = dict[str, str]


def content_hashes(root: str, paths: Sequence[str]) -> list[str]:
    """A hash of the bytes of each of the files at `paths` below the absolute folder `root`.

    A file that is missing or empty is an error.
    """
    states = [_state(f"{root}/{path}") for path in paths]
    found: list[str | None] = [None] * len(paths)
    by_folder: dict[str, list[int]] = defaultdict(list)
    for place, path in enumerate(paths):
        by_folder[path.rpartition("/")[0]].append(place)
    with closing(ArrayStore(cache_folder() / "image-hashes.sqlite")) as store:
        known = _remembered(store, [f"{root}/{folder}" for folder in by_folder])
        for folder, places in by_folder.items():
            entries = known.get(f"{root}/{folder}", {})
            for place in places:
                entry = entries.get(paths[place].rpartition("/")[2], "")
                if entry.startswith(states[place]):
                    found[place] = entry[len(states[place]) :]
        unknown = [place for place, known_hash in enumerate(found) if known_hash is None]
        if unknown:
            _read_all(store, root, paths, unknown, found)
    return [_PREFIX + (each or "") for each in found]


def _read_all(
    store: ArrayStore, root: str, paths: Sequence[str], places: list[int], found: list[str | None]
) -> None:
    """Read the files at `places`, in several threads, and remember what they hold."""

    def read(group: list[int]) -> list[tuple[str, str, bool]]:
        return [_read(f"{root}/{paths[place]}") for place in group]

    groups = [places[start : start + _GROUP] for start in range(0, len(places), _GROUP)]
    workers = default_workers() if len(groups) > 1 else 0
    telling = _Telling(len(places))
    fresh: dict[str, _Entries] = defaultdict(dict)
    waiting = 0
    results = ordered_map(read, groups, workers, 4 * workers)
    for group, entries in zip(groups, results, strict=True):
        for place, (state, digest, settled) in zip(group, entries, strict=True):
            found[place] = digest
            if settled:
                folder, _, name = paths[place].rpartition("/")
                fresh[f"{root}/{folder}"][name] = state + digest
                waiting += 1
        if waiting >= _SAVED:
            _remember(store, fresh)
            fresh.clear()
            waiting = 0
        telling.advance(len(group))
    _remember(store, fresh)


def _read(path: str) -> tuple[str, str, bool]:
    """The state of a file, the hash of what it holds, and whether that may be remembered."""
    now = time.time_ns()
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - many thousand files
            state = os.fstat(file.fileno())
            digest = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None
    settled = max(state.st_mtime_ns, state.st_ctime_ns) < now - _SETTLED
    return _told(state), digest, settled


def _state(path: str) -> str:
    try:
        state = os.stat(path)  # noqa: PTH116 - called for many thousand files
    except OSError as error:
        raise _unreadable(path, error) from None
    if not state.st_size:
        raise DataError(
            f"image '{path}' is empty", "Download or unpack it again: it was cut short."
        )
    return _told(state)


def _told(state: os.stat_result) -> str:
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} "


def _unreadable(path: str, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return DataError(
            f"image '{path}' is gone: {error.strerror}", "Put the file back and run again."
        )
    return DataError(
        f"image '{path}' cannot be read: {error.strerror}",
        "Check the file, its permissions and the disk, and run again.",
    )


def _remembered(store: ArrayStore, folders: Sequence[str]) -> dict[str, _Entries]:
    """What is known of the files of each folder, by name."""
    known = {}
    for folder, text in store.get(folders).items():
        known[folder] = json.loads(text.tobytes())
    return known


def _remember(store: ArrayStore, fresh: Mapping[str, _Entries]) -> None:
    """Add entries to those of their folders, which other processes may have extended."""
    known = _remembered(store, list(fresh))
    store.put(
        {
            folder: np.frombuffer(json.dumps(known.get(folder, {}) | entries).encode(), np.uint8)
            for folder, entries in fresh.items()
        }
    )


class _Telling:
    """Says now and then how far the reading is, if it takes long."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._next = time.monotonic() + _LONG

    def advance(self, count: int) -> None:
        self._done += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _LONG
            print(
                f"reading images to know their content (remembered for the next time): "
                f"{self._done:,} of {self._total:,}",
                file=sys.stderr,
                flush=True,
            )
