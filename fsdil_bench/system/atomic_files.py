"""Files that are there as a whole or not at all, also after a kill and on a full disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A draft to write to, which becomes the file or folder `path` at the end; an error leaves
    none, and names `path`."""
    draft = path.with_name(path.name + ".tmp")
    try:
        yield draft
        draft.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, str(draft)):
            error.filename = str(path)  # a full disk is reported without a name
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    with drafted(path) as draft, draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
