"""Files that anybody may have written: only regular ones are read, and never more than a limit."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

_DEEPEST = 50  # levels of a JSON file; records have about six
_TOO_DEEP = f"it is nested more than {_DEEPEST} levels deep"


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a file; a ValueError for what is no file and for files over `limit` bytes.

    A named pipe or a device would otherwise make the reader wait forever.
    """
    # Without waiting: to open a pipe that nobody writes to would already block.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no regular file")
        if found.st_size > limit:
            raise ValueError(f"it has {found.st_size:,} bytes, more than {limit:,}")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return data


def read_json(path: Path, limit: int) -> Any:
    """The values of a JSON file; a ValueError for everything that JSON or UTF-8 does not allow.

    Numbers are finite and integers have 64 bits, so that everything can be computed with. A link to
    a file in another folder is refused: it could show the content of any file.
    """
    if path.is_symlink() and Path(os.path.realpath(path)).parent != path.parent.resolve():
        raise ValueError("it is a symbolic link to another folder")
    text = read_regular(path, limit).decode("utf-8")
    try:
        values = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, parse_int=_short_integer
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if any(i > _DEEPEST for i, _ in enumerate(levels([values]))):
        raise ValueError(_TOO_DEEP)
    if "\\ud" in text.lower():  # half of a pair of code units: no text, though JSON can write it
        json.dumps(values, ensure_ascii=False).encode("utf-8")
    return values


def levels(values: Any) -> Iterator[int]:
    """How many values are on each level of nesting, the outermost first."""
    level = [values]
    while level:
        parts = [each.values() if isinstance(each, dict) else each for each in level]
        yield sum(map(len, parts))
        level = [each for part in parts for each in part if isinstance(each, (dict, list))]


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _short_integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= (value := int(text)) < 2**63:
        raise ValueError(f"{text[:20]} is too large a number")
    return value
