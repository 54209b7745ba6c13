"""What a process of a sealed run does that a method has no need of: noted, and told to the harness.

An audit hook of Python notes files that are written outside the process's own folder, connections,
and processes that are started. Notes are written to a pipe as they happen. The harness judges
them: it alone knows where data, cache and runs are. Code that does not go through Python is not
seen here; where the kernel has Landlock, writing is forbidden to it as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsdil_bench.records.redaction import without_folders

Note = Callable[[str, str], None]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Events by their name: the kind of the note, and which argument says what it was about.
_EVENTS: Mapping[str, tuple[str, int]] = {
    "os.link": ("write", 1), "os.mkdir": ("write", 0), "os.remove": ("write", 0),
    "os.rename": ("write", 1), "os.rmdir": ("write", 0), "os.symlink": ("write", 1),
    "os.truncate": ("write", 0), "sqlite3.connect": ("write", 0),
    "socket.bind": ("connect", 1), "socket.connect": ("connect", 1),
    "socket.getaddrinfo": ("connect", 0), "socket.sendto": ("connect", 1),
    "os.exec": ("start", 0), "os.posix_spawn": ("start", 0), "os.spawn": ("start", 1),
    "os.system": ("start", 0), "subprocess.Popen": ("start", 0), "os.fork": ("fork", -1),
    "os.forkpty": ("fork", -1), "pty.spawn": ("start", 0),
}  # fmt: skip
_DEVICES, _SHARED = ("/dev/", "/proc/", "/sys/"), "/dev/shm/"
_CODE = (".py", ".pyc", ".so", ".pth")
_LONGEST = 2000  # bytes of a note: less than what a pipe takes in one piece
_SENTENCES = {
    "write": "wrote outside its own folder: {}",
    "connect": "used the network: {}",
    "start": "started a program: {}",
    "fork": "started a copy of itself",
    "import": "tried to import what makes a scenario: {}",
}
_MOST_SENTENCES = 20


def watch(pipe: int, scratch: str) -> Note:
    """Note from now on what this process does; what is below `scratch` or read-only is its own
    affair, unless the harness knows better. Returns a function that notes something by itself."""
    os.set_blocking(pipe, False)  # a full pipe must not stop the method; it says enough
    write, dump, real = os.write, json.dumps, os.path.realpath
    own = (real(scratch) + os.sep, *_DEVICES)
    python = tuple(real(path) + os.sep for path in (sys.prefix, sys.base_prefix))
    known: set[tuple[str, str]] = set()

    def note(kind: str, about: str) -> None:
        if (kind, about) in known:
            return
        known.add((kind, about))
        with suppress(OSError):
            write(pipe, dump([kind, about[:_LONGEST]])[: 2 * _LONGEST].encode() + b"\n")

    def opened(path: Any, mode: Any, flags: Any) -> None:
        if not isinstance(path, str | bytes):
            return  # a descriptor that is open already
        full = real(os.fsdecode(path))
        writes = bool(flags & _WRITES) if isinstance(flags, int) else "r" not in (mode or "r")
        if f"{full}/".startswith(own) and not full.startswith(_SHARED):
            return
        if writes and "__pycache__" not in full:
            note("write", full)
        elif not writes and not full.endswith(_CODE) and not full.startswith(python):
            note("read", full)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            opened(*arguments[:3])
        elif event in _EVENTS:
            kind, which = _EVENTS[event]
            about = arguments[which] if which >= 0 else ""
            if kind == "write":
                opened(about, "w", None)
            else:
                note(kind, str(about))

    sys.addaudithook(hook)
    return note


def judged(notes: bytes, secret: Iterable[Path]) -> list[str]:
    """Sentences about the notes of a process; `secret` are folders that it has no way to."""
    folders = [f"{folder.resolve()}/" for folder in secret]
    found: list[str] = []
    for line in notes.splitlines():
        try:
            kind, about = json.loads(line)
        except (ValueError, TypeError):
            found.append("wrote to the line on which its notes are sent")
            continue
        if kind == "read":
            if f"{about}/".startswith(tuple(folders)):
                found.append(f"read what belongs to the harness: {Path(about).name}")
        elif kind in _SENTENCES:
            found.append(_SENTENCES[kind].format(without_folders(about)))
    return list(dict.fromkeys(found))[:_MOST_SENTENCES]
