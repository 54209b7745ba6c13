"""Private details in a record: folders of a machine, its name and its user.

Paths and names can be anywhere in texts such as the command or an error message, so they are found
by pattern.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Iterator
from typing import Any

# An absolute path, or one from the home folder; the slash in "ViT-B/16" begins none.
_PATH = re.compile(r"""(?<![\w.~/\\-])(?:~|/|[A-Za-z]:[\\/])[^\s'",;+]*""")
_COMMON_NAMES = {"admin", "docker", "localhost", "root", "runner", "ubuntu", "user", "vscode"}


def without_folders(text: str) -> str:
    """`text` with every absolute path cut to its last part."""
    return _PATH.sub(lambda match: re.split(r"[/\\]", match[0].rstrip("/\\"))[-1], text)


def without_paths(value: Any) -> Any:
    """A JSON structure in which every absolute path, also in keys, is cut to its last part."""
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, dict):
        return {without_folders(key): without_paths(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_paths(each) for each in value]
    return value


def names_in(value: Any, place: str = "") -> Iterator[str]:
    """Places in a JSON structure that name this machine or its user, each with the name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from names_in(each, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from names_in(each, f"{place}[{i}]")
    elif isinstance(value, str):
        for name in _own_names():
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", value):
                yield f"{place} names '{name}'"


def _own_names() -> set[str]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        user = ""
    return {name for name in (user, platform.node()) if len(name) > 2 and name not in _COMMON_NAMES}
