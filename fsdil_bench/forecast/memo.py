"""What was measured or rehearsed before, kept in the cache folder as small JSON files."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.system.atomic_files import write_atomically

FOLDER = "forecast"


def remembered(key: list[Any], find: Callable[[], Any]) -> Any:
    """What `find` returns, in plain JSON types; found once for a key and the code behind it."""
    file = cache_folder() / FOLDER / f"{_digest([*key, _versions()])}.json"
    with suppress(OSError, ValueError):
        return json.loads(file.read_text(encoding="utf-8"))
    found = json.loads(json.dumps(find()))
    with suppress(OSError):  # a cache that cannot be written costs the cache alone
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(found))
    return found


@cache
def machine() -> str:
    """The processor of this machine."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


@cache
def _versions() -> list[str]:
    """What makes old findings worthless: another version of this code, or of torch."""
    return [code_version("fsdil_bench.forecast.forecaster:Forecaster"), metadata.version("torch")]


def _digest(key: list[Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()[:32]
