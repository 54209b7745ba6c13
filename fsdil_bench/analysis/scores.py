"""The scores of a row: mean and spread over seeds, confidence interval, place on the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsdil_bench.records.metrics import METRICS, mean_and_std
from fsdil_bench.records.record import Record

from .evidence import competes
from .grouping import RowKey
from .statistics import best_group, interval


@dataclass(frozen=True)
class Score:
    """One score of a row, in percent.

    `mean` and `std` (population) are over seeds; `low` and `high` are the ends of the 95 %
    confidence interval, and `covers` says what the interval is about. `place` is "best", "tied"
    (not distinguishable from the best) or "behind"; it is empty for rows that do not compete and
    for rows without predictions.
    """

    mean: float | None
    std: float | None
    low: float | None = None
    high: float | None = None
    covers: str = ""
    place: str = ""

    @property
    def leads(self) -> bool:
        """Whether no row is known to be better."""
        return self.place in ("best", "tied")


def scores_of_rows(
    rows: Mapping[RowKey, Sequence[Record]],
) -> dict[RowKey, dict[str, Score]]:
    """The scores of all rows of a board, by metric; rows without records have no score.

    Methods that keep old images do not compete, nor do those with runs for development only.
    """
    finished = {key: records for key, records in rows.items() if records}
    places = {metric: _places(finished, metric) for metric in METRICS}
    return {
        key: {metric: _score(records, metric, places[metric].get(key, "")) for metric in METRICS}
        for key, records in rows.items()
    }


def _places(rows: Mapping[RowKey, Sequence[Record]], metric: str) -> dict[RowKey, str]:
    rivals = {
        key: records
        for key, records in sorted(rows.items())
        if competes(records) and _one_per_seed(records)
    }
    group = best_group(rivals, metric)
    places = {key: "tied" if leads else "behind" for key, leads in group.items()}
    if places:
        best = min(places, key=lambda key: (-_mean(rows[key], metric), key))
        places[best] = "best"
    return places


def _score(records: Sequence[Record], metric: str, place: str) -> Score:
    mean, std = mean_and_std([record.metrics[metric] for record in records])
    found = interval(records, metric) if records else None
    if found is None:
        return Score(mean, std, place=place)
    return Score(mean, std, round(found.low, 4), round(found.high, 4), found.covers, place)


def _one_per_seed(records: Sequence[Record]) -> bool:
    """Whether runs can be paired by seed; runs of one seed may differ in what no row shows."""
    return len({record.seed for record in records}) == len(records)


def _mean(records: Sequence[Record], metric: str) -> float:
    # Rounded, so that noise in the last bit never decides.
    values = [record.metrics[metric] for record in records]
    return round(sum(value for value in values if value is not None) / len(values), 8)
