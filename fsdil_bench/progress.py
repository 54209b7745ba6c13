"""Telling a user how far a run is: a bar in a terminal, one line in a notebook, plain lines
elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass
class Stretch:
    """A phase that has begun, and how much of it is done."""

    name: str
    total: int | None
    began: float
    done: int = 0


class PlainProgress(Progress):
    """Lines without control characters: for logs and pipes.

    One line for a finished phase, or for several of the same name in a row; and where nothing was
    said for `SILENCE` seconds, one that says how far the innermost phase is.
    """

    SILENCE = 30.0
    LOOK = 1.0  # seconds between two looks at the clock, for phases that do not advance

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._finished, self._units, self._seconds = "", 0, 0.0
        self._open: list[Stretch] = []
        self._said = clock()
        self._lock = threading.Lock()  # a thread looks at the clock, too

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Measure how long the phase takes."""
        with self._stretch(name, total) as stretch:
            yield
        if name != self._finished:
            self._tell()
        self._finished = name
        self._units += total or 0
        self._seconds += self._clock() - stretch.began

    def advance(self, amount: int = 1) -> None:
        """Count, and say how far it is after a while of silence."""
        if self._open:
            self._open[-1].done += amount
        self._remind()

    def say(self, text: str) -> None:
        """Print a line."""
        self._tell()
        self._print(text)

    @contextmanager
    def _stretch(self, name: str, total: int | None) -> Iterator[Stretch]:
        stretch = Stretch(name, total, self._clock())
        if not self._open:
            self._idle = threading.Event()
            threading.Thread(target=self._watch, args=(self._idle,), daemon=True).start()
        self._open.append(stretch)
        try:
            yield stretch
        finally:
            self._open.remove(stretch)  # phases of interleaved loops end in any order
            if not self._open:
                self._idle.set()

    def _watch(self, idle: threading.Event) -> None:
        while not idle.wait(self.LOOK):
            self._remind()

    def _remind(self) -> None:
        with self._lock:
            innermost = self._open[-1:]  # it may end meanwhile
            if innermost and self._clock() - self._said >= self.SILENCE:
                self._print(self._how_far(*innermost))

    def _how_far(self, stretch: Stretch) -> str:
        seconds = self._clock() - stretch.began
        of = f" of {stretch.total}" if stretch.total else ""
        done = f"{stretch.done}{of}, " if stretch.done or of else ""
        rate = f", {stretch.done / seconds:.3g} per s" if stretch.done and seconds else ""
        return f"{stretch.name}: {done}{seconds:.0f} s{rate}"

    def _tell(self) -> None:
        """Print the phases that are over."""
        if self._finished:
            size = f" ({self._units})" if self._units else ""
            self._print(f"{self._finished}{size}: {self._seconds:.1f} s")
        self._finished, self._units, self._seconds = "", 0, 0.0

    def _print(self, line: str) -> None:
        self._said = self._clock()
        print(line, file=self._stream, flush=True)


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


class NotebookProgress(Progress):
    """One line below a cell, changed in place: what is being done, or how long it took.

    What else is to be said (a warning, say) is printed and stays.
    """

    PAUSE = 0.3  # seconds between two changes; each of them is a message to the browser

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        from IPython.display import display

        # What tqdm says to every notebook without ipywidgets, as soon as a library imports it.
        warnings.filterwarnings("ignore", message="IProgress not found")
        self._name = name
        self._clock = clock
        self._began = self._shown = clock()
        self._domain = ""
        self._open: list[Stretch] = []
        self._handle = display(self._bundle(name), raw=True, display_id=True)

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Show the phase while it lasts."""
        stretch = Stretch(name, total, self._clock())
        self._open.append(stretch)
        self._change()
        try:
            yield
        finally:
            self._open.remove(stretch)  # phases of interleaved loops end in any order

    def advance(self, amount: int = 1) -> None:
        """Count."""
        if self._open:
            self._open[-1].done += amount
            self._change()

    def say(self, text: str) -> None:
        """Show how a domain went until the next one; print everything else."""
        if text.startswith("domain "):
            self._domain = " ".join(text.split())
            self._change()
        else:
            print(text)

    def close(self, done: bool) -> None:
        """Show how long it took, or that it has not come to its end."""
        seconds = f"{self._clock() - self._began:.1f} s"
        self._show(f"{self._name}: {seconds if done else f'stopped after {seconds}'}")

    def _change(self) -> None:
        if self._clock() - self._shown < self.PAUSE or not self._open:
            return
        stretch = self._open[-1]
        far = f" {stretch.done} of {stretch.total}" if stretch.total else ""
        parts = [self._name, *([self._domain] if self._domain else []), f"{stretch.name}{far}"]
        self._show(" | ".join(parts))

    def _show(self, line: str) -> None:
        self._shown = self._clock()
        self._handle.update(self._bundle(line), raw=True)

    @staticmethod
    def _bundle(line: str) -> dict[str, str]:
        return {"text/plain": line}


@contextmanager
def shown(progress: Progress | bool | None, name: str) -> Iterator[Progress]:
    """The progress to tell of something called `name`.

    None shows it in a notebook and nowhere else, True everywhere, False nowhere.
    """
    if isinstance(progress, Progress):
        yield progress
    elif progress is not False and _in_notebook():
        line = NotebookProgress(name)
        done = False
        try:
            yield line
            done = True
        finally:
            line.close(done)
    elif progress:
        from rich.console import Console

        terminal = Console(stderr=True)
        yield RichProgress(terminal) if terminal.is_terminal else PlainProgress()
    else:
        yield Progress()


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython in a terminal is none."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
