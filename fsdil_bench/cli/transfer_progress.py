"""How far a transfer is, shown to the user: like `fsdil_bench.progress`, with units of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.filesize import decimal

from fsdil_bench.progress import PlainProgress, RichProgress, Stretch

if TYPE_CHECKING:
    from rich.console import Console


class TransferBars(RichProgress):
    """Bars with bytes, speed and the time left, for terminals."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        super().__init__(console)
        self._bars.columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
        )


class TransferLines(PlainProgress):
    """A line at the start, now and then, and at the end of a transfer: for logs and pipes."""

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Say what starts, and at the end how much it was."""
        self.say(f"{name}{f' ({decimal(total)})' if total else ''}")
        with self._stretch(name, total) as stretch:
            yield
        self.say(f"{name}: {decimal(stretch.done)} in {self._clock() - stretch.began:.0f} s")

    def _how_far(self, stretch: Stretch) -> str:
        share = f" ({stretch.done / stretch.total:.0%})" if stretch.total else ""
        return f"{stretch.name}: {decimal(stretch.done)}{share}"
