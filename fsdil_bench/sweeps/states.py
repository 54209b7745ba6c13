"""How far a run is, from what lies in its folder; and why it failed, if it did."""

from __future__ import annotations

import datetime
import glob
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fsdil_bench.errors import RecordError
from fsdil_bench.records.record import RECORD_FILE, Record
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.system.atomic_files import write_atomically

from .launchers.launcher import PROGRESS_FILE

FAILURE_FILE = "failure.json"
_TAIL = 40  # lines of the log that a failure keeps
_FRESH = 600.0  # seconds for which a note of progress counts

StateName = Literal["done", "damaged", "other version", "failed", "half-done", "missing"]


@dataclass(frozen=True)
class RunState:
    """What is on disk. `domains` are finished ones, `why` says more of a failure or a bad record.

    A "damaged" record is no JSON: the run is made again. One of an "other version" is left alone.
    """

    name: StateName
    domains: int = 0
    why: str = ""
    record: Record | None = None


def state_of(path: Path) -> RunState:
    """The state of the run in a folder."""
    if (path / RECORD_FILE).is_file():
        return _recorded(path)
    domains = RunFolder(path).finished_domains()
    failure = read_failure(path)
    if failure is not None:
        return RunState("failed", domains, str(failure.get("reason", "")))
    return RunState("half-done" if domains else "missing", domains)


def _recorded(path: Path) -> RunState:
    try:
        return RunState("done", record=Record.load(path))
    except RecordError as error:
        damaged = not _is_object(path / RECORD_FILE)
        return RunState("damaged" if damaged else "other version", why=error.message)


def _is_object(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except ValueError:
        return False
    except OSError:  # it may well be one: nobody may touch what cannot be read
        return True


def read_failure(path: Path) -> dict[str, Any] | None:
    """What an earlier sweep noted about a run that failed."""
    try:
        failure = json.loads((path / FAILURE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return failure if isinstance(failure, dict) else None


def write_failure(
    places: Sequence[Path], key: str, attempts: Sequence[Mapping[str, Any]], log: Path | None
) -> Path | None:
    """Note a failure in the first of the folders that takes it.

    Each of `attempts` says `attempt`, `reason`, and `exit_code` or `signal` where known.
    """
    failure = {
        "key": key,
        **attempts[-1],
        "attempts": list(attempts),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "log": str(log) if log else "",
        "log_tail": log_tail(log),
    }
    for place in places:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            write_atomically(place / FAILURE_FILE, json.dumps(failure, indent=1) + "\n")
            return place / FAILURE_FILE
    return None


def forget_failure(path: Path) -> None:
    """The run is complete: how it failed before no longer matters."""
    with suppress(OSError):
        (path / FAILURE_FILE).unlink()


def newest_progress(folder: Path) -> str:
    """What the process of a sweep does for the run in a folder, as far as it said so just now."""
    *_, scenario, method, run = folder.parts
    key = "/".join(map(glob.escape, (scenario, method, run)))
    newest, phase = time.time() - _FRESH, ""
    for note in (folder.parents[2] / "sweeps").glob(f"*/*/{key}/attempt-*/{PROGRESS_FILE}"):
        with suppress(OSError):
            if (said := note.stat().st_mtime) > newest:
                newest, phase = said, read_progress(note)
    return phase


def read_progress(note: Path) -> str:
    """The phase that a process notes, with how much of it is done; empty if it noted nothing."""
    with suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        said = json.loads(note.read_text(encoding="utf-8"))
        part = f" {100 * said['done'] // said['total']} %" if said.get("total") else ""
        return f"{said['phase']}{part}".strip()
    return ""


def log_tail(log: Path | None) -> list[str]:
    """The last lines of a log."""
    if log is None:
        return []
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 20_000))
            return file.read().decode("utf-8", "replace").splitlines()[-_TAIL:]
    except OSError:
        return []
