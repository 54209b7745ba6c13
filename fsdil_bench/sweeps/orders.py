"""Orders of domains in a sweep: how many are drawn, or which ones; and then each run's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fsdil_bench.data.domain_orders import Order, draw_orders
from fsdil_bench.data.scenario import arrange
from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.runs.lookup import Lookup

from .request import OrderNumber, SweepRun
from .values import check_length, short

_REMEDY = 'Write orders = 5, or orders = [["a", "b"], ["b", "a"]].'


def orders_of(grid: Mapping[str, Any]) -> list[tuple[OrderNumber | None, Order]]:
    """The orders of a grid: their numbers, and the domains where the file lists them."""
    given, free_base = grid.get("orders"), grid.get("free_base", False)
    if not isinstance(free_base, bool):
        raise RequestError(f"free_base = {short(free_base)} does not fit", "Write true or false.")
    if isinstance(given, list):
        return _listed(given, grid)
    if given is None:
        if free_base:
            raise RequestError(
                "a free base has no effect without orders",
                "Add `--orders 5`, or orders = 5 in a file.",
            )
        return [(None, ())]
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise RequestError(f"orders = {short(given)} does not fit", _REMEDY)
    check_length("orders", given)
    return [(OrderNumber(number, given, free_base), ()) for number in range(given)]


def _listed(given: list[Any], grid: Mapping[str, Any]) -> list[tuple[OrderNumber | None, Order]]:
    check_length("orders", len(given))
    for name in ("order", "base", "free_base"):
        if name in grid:
            raise RequestError(
                f"{name} and a list of orders exclude each other", f"Leave {name} out."
            )
    for order in given:
        names = order if isinstance(order, list) else []
        if not names or not all(isinstance(name, str) for name in names):
            raise RequestError(f"orders: {short(order)} does not fit", _REMEDY)
    distinct = dict.fromkeys(tuple(order) for order in given)
    if not distinct:
        raise RequestError("orders is empty", _REMEDY)
    return [(OrderNumber(number), order) for number, order in enumerate(distinct)]


def with_order(run: SweepRun, lookup: Lookup) -> SweepRun:
    """The run with the order of domains that its number stands for.

    A run whose data is missing stays as it is: nothing can be planned for it.
    """
    if run.order is None:
        return run
    request = run.request
    if lookup.splits_base(request.scenario):
        raise RequestError(
            f"{request.scenario} has no orders: it is made from the base domain alone",
            "Leave it out, or ask for no orders.",
        )
    listed = request.order if not run.order.drawn else ()
    try:
        stream = lookup.stream(replace(request, seed=0, order=() if listed else request.order))
    except FsdilError:
        return run
    if listed:
        arrange(stream, listed)  # refuses names that it does not have
        return run
    own = tuple(domain.name for domain in stream.domains)
    order = _drawn(own, run.order.drawn, run.order.free_base)[run.order.number]
    return replace(run, request=replace(request, order=order, base=""))


@lru_cache
def _drawn(own: Order, number: int, free_base: bool) -> list[Order]:
    return draw_orders(own, number, free_base=free_base)
