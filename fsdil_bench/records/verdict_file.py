"""verdict.json beside a record: who ran it again, when, with what, and how it came out.

`fsdil-bench verify` writes it and boards show it. It is a statement of whoever wrote it, not a
proof. It holds the hash of the record that it is about, so it does not pass for another one.
"""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fsdil_bench import __version__
from fsdil_bench.system.atomic_files import write_atomically

from .files import read_json
from .record import Record

VERDICT_FILE = "verdict.json"
OUTCOMES = ("identical", "close", "differs")

_MAX_BYTES = 1 << 16
_LONGEST = 200  # letters of a text


@dataclass(frozen=True)
class SavedVerdict:
    """How a run that was repeated compares with its record.

    `outcome` is "identical", "close" (as close as the devices allow) or "differs". `sealed` says
    whether the new run was sealed. `content_sha256` is the hash of the record.
    """

    outcome: str
    who: str
    when: str
    version: str
    platform: str
    sealed: bool
    content_sha256: str


def make_verdict(record: Record, outcome: str, *, who: str, sealed: bool) -> SavedVerdict:
    """The verdict of this moment, on this machine, on a record."""
    return SavedVerdict(
        outcome=outcome,
        who=" ".join(who.split())[:_LONGEST] or "unknown",
        when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        version=__version__,
        platform=platform.platform()[:_LONGEST],
        sealed=sealed,
        content_sha256=_hash_of(record),
    )


def save_verdict(record: Record, verdict: SavedVerdict) -> Path:
    """Write a verdict beside its record, in place of an earlier one."""
    assert record.folder is not None
    path = record.folder / VERDICT_FILE
    write_atomically(path, json.dumps(asdict(verdict), indent=1) + "\n")
    return path


def read_verdict(record: Record) -> SavedVerdict | None:
    """The verdict beside a record; None where there is none that is about it."""
    try:
        return _read(record)
    except ValueError:
        return None


def verdict_problem(record: Record) -> str:
    """Why the verdict beside a record does not count; nothing if it does or there is none."""
    try:
        _read(record)
    except ValueError as error:
        return f"{record.folder}/{VERDICT_FILE} is ignored: {error}"
    return ""


def git_user() -> str:
    """The name that git signs commits with here, or "unknown"."""
    command = ["git", "config", "user.name"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return "unknown"
    return found.stdout.strip() or "unknown"


def _read(record: Record) -> SavedVerdict | None:
    """As `read_verdict`, with a ValueError for a file that does not count."""
    if record.folder is None:
        return None
    try:
        values = read_json(record.folder / VERDICT_FILE, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    if not _has_form(values):
        raise ValueError("it does not have the form of a verdict")
    verdict = SavedVerdict(**values)
    if verdict.content_sha256 != _hash_of(record):
        raise ValueError("it is about another record")
    return verdict


def _has_form(values: Any) -> bool:
    if not isinstance(values, dict) or set(values) != {each.name for each in fields(SavedVerdict)}:
        return False
    texts = [value for name, value in values.items() if name != "sealed"]
    return (
        isinstance(values["sealed"], bool)
        and all(isinstance(text, str) and len(text) <= _LONGEST for text in texts)
        and values["outcome"] in OUTCOMES
    )


def _hash_of(record: Record) -> str:
    return record.content_sha256 or record.hashed().content_sha256 or ""
