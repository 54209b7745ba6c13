"""What a tracker is: it shows runs in another program, domain by domain, while they are made.

A tracker is offered by the hook `fsdil_trackers`, and asked for with `--track NAME`. Its factory
takes a `TrackedRun` and returns a `Tracker`. `fsdil_bench.runs.tracking` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fsdil_bench.records.record import Record

from .finished_domain import FinishedDomain


@dataclass(frozen=True)
class TrackedRun:
    """A run that begins, or is resumed.

    `key` is its folder below the folder of all runs. The same run has the same key on every
    machine, so it is the name by which a tracker finds again what it has logged before. `place` is
    a folder below `--out` that belongs to the tracker alone. It need not be there yet, and all runs
    share it.

    `spec` is that of the record to come. `environment` says when, where and with which packages it
    is run (`provenance` of the record). With `fresh`, what was logged before is to be replaced.
    """

    run_id: str
    sealed: bool
    key: str
    spec: Mapping[str, Any]
    environment: Mapping[str, Any]
    domains: tuple[str, ...]
    place: Path
    fresh: bool = False

    @property
    def unique_id(self) -> str:
        """The run id; that of a sealed run says so, since the ordinary run has the same id."""
        return self.key.rpartition("/")[2].partition("-")[2]

    @property
    def title(self) -> str:
        """What is run, in words."""
        return f"{self.spec['method']} {self.spec['scenario']} seed {self.spec['seed']}" + (
            " sealed" if self.sealed else ""
        )


class Tracker(Protocol):
    """Logs one run.

    Whatever it raises becomes a warning, and the run continues. It may be told of the same domain
    twice, by different processes: the first was perhaps killed before it could log anything.
    """

    def domain_finished(self, domain: FinishedDomain) -> None:
        """Log a domain. After an interruption all earlier ones come first (`domain.resumed`)."""

    def run_finished(self, record: Record) -> None:
        """Log the scores, after the record is on disk."""

    def close(self, *, complete: bool) -> None:
        """Let go of everything, also after an error or an interrupt (then not `complete`)."""
