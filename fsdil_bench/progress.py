"""Telling a user how far a run is: a bar in a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Progress:
    """The silent one, and what the others implement."""

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """A stretch of work of `total` units; phases may nest."""
        del name, total
        yield

    def advance(self, amount: int = 1) -> None:
        """So many units of the innermost phase are done."""

    def say(self, text: str) -> None:
        """A line for the user."""


class PlainProgress(Progress):
    """Lines without control characters: for logs and pipes.

    One line for a finished phase, or for several of the same name in a row.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._finished, self._units, self._seconds = "", 0, 0.0

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Measure how long the phase takes."""
        began = time.perf_counter()
        yield
        if name != self._finished:
            self._tell()
        self._finished = name
        self._units += total or 0
        self._seconds += time.perf_counter() - began

    def say(self, text: str) -> None:
        """Print a line."""
        self._tell()
        print(text, file=self._stream, flush=True)

    def _tell(self) -> None:
        """Print the phases that are over."""
        if self._finished:
            size = f" ({self._units})" if self._units else ""
            print(f"{self._finished}{size}: {self._seconds:.1f} s", file=self._stream, flush=True)
        self._finished, self._units, self._seconds = "", 0, 0.0


class RichProgress(Progress):
    """Bars with the time left, for terminals."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._open: list[int] = []

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Show a bar while the phase lasts."""
        if not self._open:
            self._bars.start()
        task = self._bars.add_task(name, total=total)
        self._open.append(task)
        try:
            yield
        finally:
            self._open.remove(task)  # phases of interleaved loops end in any order
            self._bars.remove_task(task)
            if not self._open:
                self._bars.stop()

    def advance(self, amount: int = 1) -> None:
        """Move the innermost bar."""
        if self._open:
            from rich.progress import TaskID

            self._bars.update(TaskID(self._open[-1]), advance=amount)

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)
