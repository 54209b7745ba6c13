"""What the formats share: which metrics stand side by side, and rows across shots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fsdil_bench.analysis.rows import Row

#: Metrics that papers print side by side.
PAIRS = (("AA*", "FA*"), ("Avg", "Last"))


def by_label(rows: Mapping[int, Sequence[Row]]) -> dict[str, dict[int, Row]]:
    """Every method's row for each number of shots, the best mean AA* over its boards first."""
    found: dict[str, dict[int, Row]] = {}
    for shots, members in rows.items():
        for row in members:
            found.setdefault(row.label, {})[shots] = row
    return dict(sorted(found.items(), key=lambda item: (_rank(item[1], rows), item[0])))


def ceiling(rows: Iterable[Row]) -> bool:
    """Whether a method keeps old images: it is shown, and not ranked."""
    return not all(row.exemplar_free for row in rows)


def _rank(own: Mapping[int, Row], rows: Mapping[int, Sequence[Row]]) -> tuple[int, float]:
    """Methods that ran with more numbers of shots first, then by AA*: no mean over other cells."""
    means = [mean for row in own.values() if (mean := row.scores["AA*"][0]) is not None]
    return len(rows) - len(means), -round(sum(means), 6)
