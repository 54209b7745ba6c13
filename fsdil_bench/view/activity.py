"""What is going on below folders of runs: which are running, which stopped, which failed.

A run is running while a process holds its lock. Of the others, sweeps note why they failed, and the
log of every run ends with the traceback if it failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fsdil_bench.analysis.unfinished import read_unfinished
from fsdil_bench.records.redaction import without_folders
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.sweeps.states import newest_progress, read_failure

_LONGEST = 300  # letters of an error


@dataclass(frozen=True)
class Started:
    """A run without a record. `domains` are done `of` so many, `phase` says what it does now.

    `changed` is when it last finished something, in seconds since 1970.
    """

    method: str
    scenario: str
    seed: str
    state: Literal["running", "failed", "stopped"]
    domains: int
    of: int | None
    phase: str
    changed: float
    error: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


def activity(folders: Iterable[Path]) -> list[Started]:
    """What became of the started runs in these folders: running ones first, then the newest."""
    found = [run for folder in folders if (run := _started(folder)) is not None]
    states = ("running", "failed", "stopped")
    return sorted(found, key=lambda run: (states.index(run.state), -run.changed))


def _started(folder: Path) -> Started | None:
    run, place = read_unfinished(folder), RunFolder(folder)
    failure = read_failure(folder) or {}
    if run is None and not failure:
        return None
    # A run that failed before it began has no spec. Its folder still says which one it is.
    named = tuple(Path(str(failure.get("key") or folder)).parts[-3:])
    scenario, method, last = named if len(named) == 3 else ("", "", folder.name)
    seed, order = last.partition("-")[0].removeprefix("seed"), None
    if run is not None:
        method, scenario, seed = (str(run.spec[name]) for name in ("method", "scenario", "seed"))
        order = run.spec["order"]
    error = (run.failure if run else "") or without_folders(str(failure.get("reason", "")))
    running = place.held()
    return Started(
        method=method,
        scenario=scenario,
        seed=seed,
        state="running" if running else "failed" if error else "stopped",
        domains=place.finished_domains(),
        of=len(order) if isinstance(order, list) else None,
        phase=newest_progress(folder) if running else "",
        changed=_changed(folder),
        error="" if running else error[:_LONGEST],
    )


def _changed(folder: Path) -> float:
    with suppress(OSError):  # removed meanwhile
        return folder.stat().st_mtime
    return 0.0
