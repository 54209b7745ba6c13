"""The scores of a row: mean and spread over seeds, confidence interval, place on the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsdil_bench.records.metrics import METRICS, mean_and_std
from fsdil_bench.records.record import Record

from .evidence import competes
from .grouping import RowKey
from .statistics import Standing, interval, standing


@dataclass(frozen=True)
class Score:
    """One score of a row, in percent.

    `mean` and `std` (population) are over seeds; `low` and `high` are the ends of the 95 %
    confidence interval, and `covers` says what the interval is about. `place` is "best" for the
    highest mean, "tied" (not distinguishable from the best), "undecided" or "behind" (worse);
    `verdict` is that of `statistics.standing`. Both are empty for rows that do not compete and for
    rows without predictions.
    """

    mean: float | None
    std: float | None
    low: float | None = None
    high: float | None = None
    covers: str = ""
    place: str = ""
    verdict: str = ""

    @property
    def leads(self) -> bool:
        """Whether it is the best mean or cannot be distinguished from it."""
        return self.place in ("best", "tied")


_PLACES = {"best": "tied", "undecided": "undecided", "worse": "behind"}


def scores_of_rows(
    rows: Mapping[RowKey, Sequence[Record]], standings: Mapping[str, Standing[RowKey]]
) -> dict[RowKey, dict[str, Score]]:
    """The scores of all rows of a board, by metric; rows without records have no score."""
    places = {metric: _places(rows, found, metric) for metric, found in standings.items()}
    return {
        key: {
            metric: _score(
                records, metric, places[metric].get(key, ""), found.verdicts.get(key, "")
            )
            for metric, found in standings.items()
        }
        for key, records in rows.items()
    }


def standings_of_rows(
    rows: Mapping[RowKey, Sequence[Record]],
) -> dict[str, Standing[RowKey]]:
    """How the rows of a board compare, by metric.

    Methods that keep old images do not compete, nor do those with runs for development only.
    """
    rivals = {
        key: records
        for key, records in rows.items()
        if records and competes(records) and _one_per_seed(records)
    }
    return {metric: standing(rivals, metric) for metric in METRICS}


def _places(
    rows: Mapping[RowKey, Sequence[Record]], found: Standing[RowKey], metric: str
) -> dict[RowKey, str]:
    places = {key: _PLACES[verdict] for key, verdict in found.verdicts.items()}
    if places:
        best = min(places, key=lambda key: (-_mean(rows[key], metric), key))
        places[best] = "best"
    return places


def _score(records: Sequence[Record], metric: str, place: str, verdict: str) -> Score:
    mean, std = mean_and_std([record.metrics[metric] for record in records])
    found = interval(records, metric) if records else None
    if found is None:
        return Score(mean, std, place=place, verdict=verdict)
    low, high = round(found.low, 4), round(found.high, 4)
    return Score(mean, std, low, high, found.covers, place, verdict)


def _one_per_seed(records: Sequence[Record]) -> bool:
    """Whether runs can be paired by seed; runs of one seed may differ in what no row shows."""
    return len({record.seed for record in records}) == len(records)


def _mean(records: Sequence[Record], metric: str) -> float:
    # Rounded, so that noise in the last bit never decides.
    values = [record.metrics[metric] for record in records]
    return round(sum(value for value in values if value is not None) / len(values), 8)
