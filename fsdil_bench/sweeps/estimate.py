"""What runs will cost, from the records of earlier ones: the same method on the same data set.

Runs with the same number of shots count if there are any, else those with other numbers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import RecordError
from ..record import RECORD_FILE, Record
from ..scenario import ScenarioId


class Costs:
    """Seconds that runs took."""

    def __init__(self) -> None:
        self._exact: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._alike: dict[tuple[str, str], list[float]] = defaultdict(list)

    @classmethod
    def of_records(cls, folders: Iterable[Path]) -> Costs:
        """All that complete runs below the folders say; what cannot be read says nothing."""
        costs = cls()
        for folder in folders:
            for path in sorted(folder.rglob(RECORD_FILE)):
                with suppress(RecordError, KeyError, TypeError, AttributeError):
                    record = Record.load(path.parent)
                    seconds = sum(record.cost["seconds"].values())
                    costs.add(record.spec["method"], record.spec["scenario"], seconds)
        return costs

    def add(self, method: str, scenario: str, seconds: float) -> None:
        """A run of `method` on `scenario` took so long."""
        self._exact[method, scenario].append(seconds)
        self._alike[method, ScenarioId.parse(scenario).dataset].append(seconds)

    def seconds(self, method: str, scenario: str) -> float | None:
        """What another such run will take; None where nothing is known."""
        known = self._exact.get((method, scenario))
        if not known:
            known = self._alike.get((method, ScenarioId.parse(scenario).dataset))
        return statistics.median(known) if known else None


def say_seconds(seconds: float | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, hours = round(seconds / 60), seconds / 3600
    if hours < 1:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if hours < 48 else f"{hours / 24:.1f} days"
