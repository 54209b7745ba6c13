"""Scores over several orders of the domains: mean, spread over orders and seeds, best and worst.

Records are compared here that would share a board if their domains came in the same order. Orders
are taken as a random sample of all orders: the interval of a mean over orders is that of Student's
t on the means of the single orders, with one degree of freedom less than there are orders. Seeds
and test images are taken as they are. All values come from the scores in the records.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from statistics import fmean, stdev
from typing import NamedTuple

from fsdil_bench.data.domain_orders import Order, draw_orders, possible_orders
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record

from .grouping import RowKey, conditions_of, distinct_runs, row_key, row_labels
from .statistics import Interval


class OrderBoardKey(NamedTuple):
    """What runs have in common that may differ in the order of their domains."""

    scenario: str
    backbone: str
    conditions: str


@dataclass(frozen=True)
class OrderScore:
    """One score of a method over orders, in percent. Deviations divide by n - 1.

    `order_std` is over the means of single orders, `seed_std` over the seeds of an order, pooled;
    it is None with one seed. `best` and `worst` are numbers of orders.
    """

    means: tuple[float, ...]
    seed_std: float | None

    @property
    def mean(self) -> float:
        """The mean over orders of the mean over seeds."""
        return fmean(self.means)

    @property
    def order_std(self) -> float:
        """How much the order matters."""
        return stdev(self.means)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the expected score over orders."""
        found = interval_over_orders(self.means)
        return Interval(max(found.low, 0.0), min(found.high, 100.0), found.level, found.covers)

    @property
    def best(self) -> int:
        """The order with the highest mean over seeds."""
        return max(range(len(self.means)), key=lambda i: round(self.means[i], 8))

    @property
    def worst(self) -> int:
        """The order with the lowest mean over seeds."""
        return min(range(len(self.means)), key=lambda i: round(self.means[i], 8))


@dataclass(frozen=True)
class OrderRow:
    """The runs of one method with one set of options and one version of its code: a list of records
    for each order of its board, with the same seeds in every order."""

    key: RowKey
    label: str
    runs: tuple[tuple[Record, ...], ...]

    @property
    def seeds(self) -> list[int]:
        """The seeds, which are the same in every order."""
        return sorted({record.seed for record in self.runs[0]})

    @property
    def exemplar_free(self) -> bool:
        """Whether the method keeps no old images."""
        return all(record.exemplar_free for records in self.runs for record in records)

    @cached_property
    def scores(self) -> dict[str, OrderScore]:
        """By metric; without those that are undefined."""
        found = {}
        for metric in METRICS:
            values = [[record.metrics[metric] for record in records] for records in self.runs]
            known = [[value for value in own if value is not None] for own in values]
            if all(known):
                found[metric] = OrderScore(tuple(fmean(own) for own in known), _pooled(known))
        return found


@dataclass(frozen=True)
class OrderBoard:
    """The methods that have all `orders`, the best AA* first.

    `base` is the domain that all orders begin with, empty if it is free. `left_out` says by label
    why a method is missing.
    """

    key: OrderBoardKey
    base: str
    orders: tuple[Order, ...]
    rows: tuple[OrderRow, ...]
    left_out: Mapping[str, str]

    def best_row(self, metric: str) -> OrderRow | None:
        """The highest mean of the methods that keep no old images."""
        rivals = [row for row in self.rows if row.exemplar_free and metric in row.scores]
        return max(rivals, key=lambda row: round(row.scores[metric].mean, 8), default=None)


class PairedOrders(NamedTuple):
    """The difference of two methods, A minus B, over orders and the seeds that both have."""

    mean: float
    interval: Interval
    p: float


def interval_over_orders(means: Sequence[float], level: float = 0.95) -> Interval:
    """The confidence interval of the expected mean, from the means of single orders."""
    from scipy.special import stdtrit

    number = len(means)
    error = stdev(means) / number**0.5
    half = -error * float(stdtrit(number - 1, (1 - level) / 2))
    centre = fmean(means)
    return Interval(centre - half, centre + half, level, f"orders of the domains ({number})")


def compare_over_orders(a: OrderRow, b: OrderRow, metric: str = "AA*") -> PairedOrders | None:
    """Two methods of one board, paired by order and seed; None if they share no seed."""
    from scipy.special import stdtr

    seeds = {*a.seeds} & {*b.seeds}
    if not seeds or metric not in a.scores or metric not in b.scores:
        return None
    ours, theirs = (
        [fmean(_value(r, metric) for r in own if r.seed in seeds) for own in row.runs]
        for row in (a, b)
    )
    gaps = [x - y for x, y in zip(ours, theirs, strict=True)]
    found, error = interval_over_orders(gaps), stdev(gaps) / len(gaps) ** 0.5
    mean = fmean(gaps)
    p = 2 * float(stdtr(len(gaps) - 1, -abs(mean) / error)) if error else float(mean == 0)
    return PairedOrders(mean, found, p)


def make_order_boards(records: Iterable[Record]) -> list[OrderBoard]:
    """A board for all runs that differ in the order of their domains; none for a single order."""
    groups: dict[OrderBoardKey, list[Record]] = defaultdict(list)
    for record in distinct_runs(records):
        if len({*_order(record)}) == len(_order(record)):  # records may come from anybody
            groups[_key(record)].append(record)
    boards = []
    for key, members in sorted(groups.items()):
        for orders in _separate_bases({_order(record) for record in members}):
            own = [record for record in members if _order(record) in orders]
            boards += [board] if (board := _make_board(key, own)) else []
    return boards


def _key(record: Record) -> OrderBoardKey:
    conditions = conditions_of(record)
    conditions["tests"] = sorted(zip(conditions.pop("order"), conditions["tests"], strict=False))
    text = json.dumps(conditions, sort_keys=True)
    return OrderBoardKey(record.spec["scenario"], record.spec["backbone"], text)


def _order(record: Record) -> Order:
    return tuple(record.spec["order"])


def _make_board(key: OrderBoardKey, records: Sequence[Record]) -> OrderBoard | None:
    runs: dict[RowKey, dict[Order, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        runs[row_key(record.spec, record.method["code"])][_order(record)].append(record)
    orders = _shared_orders([{*own} for own in runs.values()])
    if len(orders) < 2:
        return None
    rows, left_out = [], {}
    labels = row_labels(runs)
    for row, own in sorted(runs.items()):
        missing = sum(order not in own for order in orders)
        seeds = set.intersection(*({r.seed for r in own[order]} for order in orders))
        if missing:
            left_out[labels[row]] = f"has {len(orders) - missing} of {len(orders)} orders"
        elif not seeds:
            left_out[labels[row]] = "has no seed in all orders"
        else:
            kept = [tuple(r for r in own[order] if r.seed in seeds) for order in orders]
            rows.append(OrderRow(row, labels[row], tuple(kept)))
    rows.sort(key=lambda row: (-round(row.scores["AA*"].mean, 8), row.label))
    bases = {order[0] for order in orders}
    base = orders[0][0] if len(bases) == 1 else ""
    return OrderBoard(key, base, orders, tuple(rows), left_out) if rows else None


def _shared_orders(rows: Sequence[Collection[Order]]) -> tuple[Order, ...]:
    """The orders of the board: those of one row, so that as many results as possible count."""

    def counted(orders: Collection[Order]) -> int:
        return len(orders) * sum(all(order in row for order in orders) for row in rows)

    chosen = max(sorted(map(sorted, rows)), key=lambda orders: (len(orders) > 1, counted(orders)))
    return tuple(_numbered({*chosen}))


def _numbered(orders: set[Order]) -> list[Order]:
    """Orders as a sweep counts them, as far as a sweep drew them."""
    drawn = _longest_draw(orders, free_base=len({order[0] for order in orders}) > 1)
    return drawn + sorted(orders - {*drawn})


def _separate_bases(orders: set[Order]) -> list[set[Order]]:
    """Orders with a fixed and with a free base, if both were drawn from the same first order.

    Together they would count the fixed base too often.
    """
    free = _longest_draw(orders, free_base=True)
    alike = {order for order in orders if order[0] == free[0][0]}
    fixed = _longest_draw(alike, free_base=False)
    extra = {*fixed} - {*free}
    bases = {order[0] for order in free}
    return [{*fixed}, orders - extra] if len(bases) > 1 and extra else [orders]


def _longest_draw(orders: set[Order], *, free_base: bool) -> list[Order]:
    """The longest beginning of what a sweep draws that is among `orders`."""

    def beginning(own: Order) -> list[Order]:
        number = min(len(orders), possible_orders(own, free_base=free_base))
        return list(takewhile(orders.__contains__, draw_orders(own, number, free_base=free_base)))

    return max(map(beginning, sorted(orders)), key=len)


def _pooled(values: Sequence[Sequence[float]]) -> float | None:
    """The standard deviation within groups."""
    freedom = sum(len(own) - 1 for own in values)
    if not freedom:
        return None
    squares = sum((value - fmean(own)) ** 2 for own in values for value in own)
    return float((squares / freedom) ** 0.5)


def _value(record: Record, metric: str) -> float:
    value = record.metrics[metric]
    assert value is not None
    return value
