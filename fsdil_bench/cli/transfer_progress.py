"""Telling a user how far a transfer is: like `fsdil_bench.progress`, with units of bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.filesize import decimal

from ..progress import PlainProgress, RichProgress

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
    """A line at the beginning, now and then, and at the end of a transfer: for logs and pipes."""

    INTERVAL = 30.0  # seconds between two lines

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Say what begins and how much it was; transfers do not nest."""
        self._name, self._total, self._done = name, total, 0
        began = self._said = time.monotonic()
        self.say(f"{name}{f' ({decimal(total)})' if total else ''}")
        yield
        self.say(f"{name}: {decimal(self._done)} in {time.monotonic() - began:.0f} s")

    def advance(self, amount: int = 1) -> None:
        """Count, and say how far it is when it has been silent for a while."""
        self._done += amount
        if time.monotonic() - self._said >= self.INTERVAL:
            self._said = time.monotonic()
            share = f" ({self._done / self._total:.0%})" if self._total else ""
            self.say(f"{self._name}: {decimal(self._done)}{share}")
