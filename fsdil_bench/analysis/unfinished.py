"""Runs that were started and have no record: they were stopped, or they failed.

A run folder without `record.json` is incomplete. It failed if its log ends with a traceback that
does not come from Ctrl-C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench.records.identity import SEALED_SUFFIX
from fsdil_bench.records.record import RECORD_FILE
from fsdil_bench.records.redaction import without_folders
from fsdil_bench.runs.run_folder import LOG_FILE, SPEC_FILE

_TRACEBACK = "Traceback (most recent call last):"
_FINISHED_DOMAIN = re.compile(r"^domain \d+ \(", re.MULTILINE)
_STOPPED = ("KeyboardInterrupt", "SystemExit", "click.exceptions.Abort")
_KNOWN = ("method", "scenario", "seed", "backbone", "precision", "config", "order")


@dataclass(frozen=True)
class Unfinished:
    """A run without a record; `failure` is the error it ended with, if it failed."""

    run_id: str
    spec: dict[str, Any]
    failure: str = ""

    @property
    def state(self) -> str:
        """In one word."""
        return "failed" if self.failure else "incomplete"


def find_unfinished(*roots: str | Path) -> list[Unfinished]:
    """All runs below the given folders that were started and have no record, in a fixed order."""
    folders = {path.parent for root in map(Path, roots) for path in root.rglob(SPEC_FILE)}
    found = [read_unfinished(folder) for folder in folders if not (folder / RECORD_FILE).is_file()]
    return one_per_run(run for run in found if run is not None)


def one_per_run(runs: Iterable[Unfinished]) -> list[Unfinished]:
    """Of several copies of a run, and of ordinary and sealed attempts, the one with an error."""
    distinct = {run.run_id: run for run in sorted(runs, key=lambda run: run.failure)}
    return [distinct[run_id] for run_id in sorted(distinct)]


def read_unfinished(folder: Path) -> Unfinished | None:
    """The run that was started in a folder without a record; None if none was."""
    try:
        spec = json.loads((folder / SPEC_FILE).read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return None
    if not isinstance(spec, dict) or any(name not in spec for name in _KNOWN):
        return None  # the spec.json of another program
    run_id = folder.name.removesuffix(SEALED_SUFFIX).rpartition("-")[2]
    return Unfinished(run_id, spec, _failure(folder / LOG_FILE))


def _failure(log: Path) -> str:
    """The error that a log ends with; none if a domain was finished after it, or after Ctrl-C."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    tail = text[text.rfind(_TRACEBACK) :] if _TRACEBACK in text else ""
    if not tail or _FINISHED_DOMAIN.search(tail):
        return ""
    # After the indented frames comes the error. Its message may have several lines.
    lines = tail.rstrip().splitlines()
    frames = max(i for i, line in enumerate(lines) if line.startswith((" ", _TRACEBACK)))
    error = lines[frames + 1] if frames + 1 < len(lines) else "unknown error"
    return "" if error.startswith(_STOPPED) else without_folders(error)
