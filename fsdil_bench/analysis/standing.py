"""How sure a score is, and which rows of a board cannot be told from the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record

from .statistics import best_group, interval

RowKey = tuple[str, str]


@dataclass(frozen=True)
class Standing:
    """A score's 95 % confidence interval, what it covers, and the row's place.

    `place` is "best", "tied" (not distinguishable from the best) or "behind"; it is empty for rows
    that do not compete, or whose per-sample predictions are not there to compare.
    """

    low: float | None
    high: float | None
    covers: str
    place: str

    @property
    def leads(self) -> bool:
        """Whether no row is known to be better."""
        return self.place in ("best", "tied")


def standings(
    rows: Mapping[RowKey, Sequence[Record]], rivals: set[RowKey]
) -> dict[RowKey, dict[str, Standing]]:
    """The standing of every row by metric; `rivals` are those that compete."""
    places = {metric: _places(rows, rivals, metric) for metric in METRICS}
    return {
        key: {metric: _standing(records, metric, places[metric].get(key, ""))
              for metric in METRICS}
        for key, records in rows.items()
    }  # fmt: skip


def _places(
    rows: Mapping[RowKey, Sequence[Record]], rivals: set[RowKey], metric: str
) -> dict[RowKey, str]:
    # Runs of the same seed that differ in what a row does not show cannot be paired.
    known = {"\n".join(key): key for key in rivals if _one_per_seed(rows[key])}
    group = best_group({name: rows[key] for name, key in sorted(known.items())}, metric)
    places = {known[name]: "tied" if leads else "behind" for name, leads in group.items()}
    if places:
        best = min(places, key=lambda key: (-_mean(rows[key], metric), key))
        places[best] = "best"
    return places


def _standing(records: Sequence[Record], metric: str, place: str) -> Standing:
    found = interval(records, metric)
    if found is None:
        return Standing(None, None, "", place)
    return Standing(round(found.low, 4), round(found.high, 4), found.covers, place)


def _one_per_seed(records: Sequence[Record]) -> bool:
    return len({record.spec["seed"] for record in records}) == len(records)


def _mean(records: Sequence[Record], metric: str) -> float:
    # Rounded, so that noise in the last bit never decides.
    values = [record.metrics[metric] for record in records]
    return round(sum(value for value in values if value is not None) / len(values), 8)
