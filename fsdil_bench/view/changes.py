"""What lies below folders of runs, known by names and times: cheap enough to ask all the time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fsdil_bench.analysis.unfinished import SPEC_FILE, Unfinished, one_per_run, read_unfinished
from fsdil_bench.records.predictions import PREDICTIONS_FILE
from fsdil_bench.records.record import RECORD_FILE
from fsdil_bench.records.verdict_file import VERDICT_FILE
from fsdil_bench.runs.run_folder import DOMAIN_PREFIX, LOG_FILE
from fsdil_bench.sweeps.states import FAILURE_FILE

_OF_RECORD = (RECORD_FILE, PREDICTIONS_FILE, VERDICT_FILE)
_OF_STARTED = (SPEC_FILE, LOG_FILE, FAILURE_FILE)

#: Time of the last change, size and number of each file that there is.
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class Seen:
    """What a look found: folders with a record, and those of runs that were started."""

    records: dict[Path, Stamp] = field(default_factory=dict)
    started: dict[Path, Stamp] = field(default_factory=dict)


def look(roots: Sequence[Path]) -> Seen:
    """Find all runs below the given folders. No file is opened."""
    seen = Seen()
    for root in roots:
        for name, folders, files in os.walk(root):
            folder = Path(name)
            if RECORD_FILE in files or RECORD_FILE in folders:
                seen.records[folder] = _stamp(folder, _OF_RECORD)
            elif SPEC_FILE in files or FAILURE_FILE in files:
                seen.started[folder] = _stamp(folder, _OF_STARTED)
            else:
                continue
            # The domains of a run hold no other runs, and there are many of them.
            folders[:] = [each for each in folders if not each.startswith(DOMAIN_PREFIX)]
    return seen


def _stamp(folder: Path, names: Sequence[str]) -> Stamp:
    found = []
    for name in names:
        with suppress(OSError):  # it is not there, or not any more
            state = (folder / name).stat()
            found.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)


class UnfinishedRuns:
    """`find_unfinished` again and again: only what changed is read."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Stamp, Unfinished | None]] = {}

    def of(self, seen: Seen) -> list[Unfinished]:
        """The unfinished runs of a look."""
        before, self._known = self._known, {}
        for folder, stamp in seen.started.items():
            known = before.get(folder)
            if known is None or known[0] != stamp:
                known = (stamp, read_unfinished(folder))
            self._known[folder] = known
        return one_per_run(run for _, run in self._known.values() if run is not None)
