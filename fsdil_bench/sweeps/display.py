"""Showing the progress of a sweep: a table that is redrawn in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .estimate import Costs, say_seconds
from .scheduler import OVER, Status, counts

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SHOWN = 20  # rows of the table


class Silent:
    """Shows nothing."""

    def changed(self, status: Status) -> None:
        """Nothing."""

    def tick(self, board: Sequence[Status]) -> None:
        """Nothing."""


class Lines:
    """One line for every change."""

    def __init__(self, cells: int, say: Callable[[str], None]) -> None:
        self._cells = cells
        self._say = say
        self._over = 0

    def changed(self, status: Status) -> None:
        """Say it, unless there is nothing new in it."""
        self._over += status.name in OVER
        if status.name == "queued" or status.found:
            return
        again = f", attempt {status.attempt}" if status.attempt > 1 else ""
        took = f" ({say_seconds(status.seconds)})" if status.name == "done" else ""
        name = "to be tried again" if status.name == "waiting" and status.reason else status.name
        why = f": {status.reason}" if status.reason and status.name != "running" else ""
        if status.name in ("done", "elsewhere"):
            why = ""
        self._say(f"[{self._over}/{self._cells}] {status.cell}{again}: {name}{took}{why}")

    def tick(self, board: Sequence[Status]) -> None:
        """Nothing happened."""


class Live(Lines):
    """The lines, and below them a table of what is under way."""

    def __init__(self, cells: int, console: Console, costs: Costs, jobs: int) -> None:
        from rich.live import Live as Screen

        super().__init__(cells, lambda text: console.print(text, markup=False, highlight=False))
        self._costs, self._jobs = costs, jobs
        self._screen = Screen(console=console, transient=True, auto_refresh=False)
        self._began = time.monotonic()

    def __enter__(self) -> Live:
        self._screen.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._screen.stop()

    def changed(self, status: Status) -> None:
        """Say it, and learn from it how long such runs take."""
        super().changed(status)
        if status.name == "done" and not status.found and status.attempt == 1:
            request = status.cell.request
            self._costs.add(request.method, request.scenario, status.seconds)

    def tick(self, board: Sequence[Status]) -> None:
        """Redraw the table."""
        self._screen.update(self.table(board), refresh=True)

    def table(self, board: Sequence[Status]) -> RenderableType:
        """What is under way, and how much is left."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        rows = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("run", "state", "domains", "doing", "since"):
            rows.add_column(name, style="dim" if name == "doing" else None)
        busy = [status for status in board if status.in_flight or status.name == "elsewhere"]
        now = time.monotonic()
        for status in busy[:_SHOWN]:
            again = f" (attempt {status.attempt})" if status.attempt > 1 else ""
            since = say_seconds(now - status.started) if status.started is not None else ""
            rows.add_row(
                str(status.cell),
                status.name + again,
                f"{status.domains}/{status.cell.domains}",
                status.phase,
                since,
            )
        over = sum(status.name in OVER for status in board)
        parts = ", ".join(f"{number} {name}" for name, number in counts(board).items())
        left = say_seconds(time_left(board, self._costs, self._jobs))
        head = f"{parts}; {say_seconds(now - self._began)} so far, left: {left}"
        more = [f"and {len(busy) - _SHOWN} more"] if len(busy) > _SHOWN else []
        foot = Table.grid(padding=(0, 2, 0, 0))
        foot.add_row(ProgressBar(len(board) or 1, over, width=30), head)
        return Group(*([rows] if busy else []), *more, foot)


def time_left(board: Sequence[Status], costs: Costs, jobs: int) -> float | None:
    """Seconds until all cells are over, `jobs` at a time; None where too little is known."""
    known: list[float] = []
    unknown = 0
    for status in board:
        if status.name in OVER:
            continue
        request = status.cell.request
        seconds = costs.seconds(request.method, request.scenario)
        if seconds is None:
            unknown += 1
        else:
            known.append(seconds * (1 - status.domains / (status.cell.domains or 1)))
    if not known and unknown:
        return None
    mean = sum(known) / len(known) if known else 0.0
    return (sum(known) + unknown * mean) / max(1, jobs)
