"""Where the cache is, and names of files in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Where caches are: `FSDIL_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("FSDIL_CACHE") or platformdirs.user_cache_dir("fsdil-bench"))


def file_name_part(name: str) -> str:
    """A name, for instance of a backbone, as a part of a file's name."""
    return re.sub(r"[^\w.-]+", "_", name)[:100]
