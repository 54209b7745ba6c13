"""The page of the leaderboards, made again in the background where a record or a run changed.

Files are looked at when a browser asks, at most once a second. Nothing else happens while nothing
changes. A page is made by one thread at a time, and after a page that took long there is a pause
twice as long, so that runs on the same machine keep most of it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.records.record import RECORD_FILE, Record, find_records
from fsdil_bench.report.leaderboards.page import served_page
from fsdil_bench.report.leaderboards.paper_lines import make_paper_lines
from fsdil_bench.report.leaderboards.write import stray_runs

from .activity import Started, activity
from .changes import Seen, UnfinishedRuns, look

_LOOK = 1.0  # seconds between two looks at the files
_PATIENCE = 0.5  # seconds that an answer waits for a look
_PAUSE = 2.0  # pause after a page was made, as a multiple of the time it took


@dataclass(frozen=True)
class Page:
    """A page as it is sent. `version` depends on its content alone."""

    version: str
    content: bytes
    policy: str


@dataclass(frozen=True)
class Made:
    """What came of making a page: of how many runs it is, which of them is the newest, why others
    were left out, and why no page could be made."""

    page: Page
    runs: int = 0
    last: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""


class LiveBoard:
    """The boards of all complete runs below `roots`, as they are now.

    `tell` is called once with every reason why a record is left out.
    """

    def __init__(
        self, roots: Sequence[Path], registry: Registry, tell: Callable[[str], None]
    ) -> None:
        self._roots = list(roots)
        self._registry = registry
        self._tell = tell
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._unfinished_runs = UnfinishedRuns()
        self._started: list[Started] = []
        self._looking: threading.Thread | None = None
        self._making = False
        self._next_look = self._next_page = 0.0
        self._made_from: object = None
        self._made = Made(self._page([], []))

    @property
    def page(self) -> Page:
        """The newest page; at first one without runs."""
        return self._made.page

    def state(self) -> dict[str, Any]:
        """Which page is the newest and what is going on, as plain JSON types."""
        self._look_soon()
        with self._lock:
            made = self._made
            return {
                "version": made.page.version,
                "runs": made.runs,
                "last": made.last,
                "notes": list(made.notes),
                "problem": made.problem,
                "making": self._making,
                "started": [run.to_dict() for run in self._started],
            }

    def _look_soon(self) -> None:
        """See that files are looked at; do not wait long for it."""
        with self._lock:
            free = self._looking is None or not self._looking.is_alive()
            if free and time.monotonic() >= self._next_look:
                self._next_look = time.monotonic() + _LOOK
                self._looking = threading.Thread(target=self._look, daemon=True)
                self._looking.start()
            looking = self._looking
        if looking is not None:
            looking.join(_PATIENCE)

    def _look(self) -> None:
        """Look at the files, and begin a page if they changed."""
        seen = look(self._roots)
        unfinished = self._unfinished_runs.of(seen)
        started = activity(seen.started)
        found = (seen.records, unfinished)
        with self._lock:
            self._started = started
            if self._making or found == self._made_from or time.monotonic() < self._next_page:
                return
            self._made_from, self._making = found, True
        threading.Thread(target=self._make, args=(seen, unfinished), daemon=True).start()

    def _make(self, seen: Seen, unfinished: list[Unfinished]) -> None:
        """Make the page again; where that fails, the last one stays until files change again."""
        began = time.monotonic()
        notes: list[str] = []
        try:
            records = find_records(*self._roots, tell=notes.append)
            page = self._page(records, unfinished)
            made = Made(page, len(records), _last(records, seen), tuple(notes))
        except Exception as error:  # for instance a folder that was removed while it was read
            said = error.message if isinstance(error, FsdilError) else repr(error)
            made = replace(self._made, problem=said)
        with self._lock:
            self._made, self._making = made, False
            self._next_page = time.monotonic() + _PAUSE * (time.monotonic() - began)
        for line in (*made.notes, made.problem):
            if line and line not in self._told:
                self._told.add(line)
                self._tell(line)

    def _page(self, records: Sequence[Record], unfinished: Sequence[Unfinished]) -> Page:
        sheets = make_sheets(records, unfinished)
        stray = stray_runs(sheets, records, unfinished)
        paper_lines = make_paper_lines(sheets, self._registry)
        script = files(__package__).joinpath("assets", "live.js").read_text(encoding="utf-8")
        text, policy = served_page(sheets, stray, paper_lines, script)
        version = hashlib.sha256(text.encode()).hexdigest()[:16]
        text = text.replace("<html ", f'<html data-version="{version}" ', 1)
        return Page(version, text.encode(), policy)


def _last(records: Sequence[Record], seen: Seen) -> dict[str, Any] | None:
    """The run that was finished last, by the time of its file."""
    times = {
        folder: time_ns
        for folder, stamp in seen.records.items()
        for name, time_ns, *_ in stamp
        if name == RECORD_FILE
    }
    newest = max(records, key=lambda record: _time(record, times), default=None)
    if newest is None:
        return None
    known = {name: newest.spec[name] for name in ("method", "scenario", "seed")}
    return known | {"time": _time(newest, times) / 1e9}


def _time(record: Record, times: dict[Path, int]) -> int:
    return times.get(record.folder, 0) if record.folder else 0
