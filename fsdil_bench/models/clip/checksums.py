"""Hashes of weights: what a run's identity knows of them, whatever their files are called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import cache_folder


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, computed again only if its size or time has changed."""
    facts = path.stat()
    key = f"{path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}"

    def digest(parts: Iterable[list[str]]) -> Iterator[dict[str, np.ndarray]]:
        for _ in parts:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").digest()
            yield {key: np.frombuffer(found, np.uint8)}

    with closing(ArrayStore(cache_folder() / "file-hashes.sqlite")) as store:
        return store.fill([key], digest, 1)[key].tobytes().hex()


def combined(*parts: Any) -> str:
    """One hash for several parts (JSON types); that of a single part is the part itself."""
    if len(parts) == 1:
        return str(parts[0])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
