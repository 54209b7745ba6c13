"""Orders of domains: a scenario's own, then permutations of it that a hash draws.

Order number j depends on the scenario's own order alone. It is the same for every number of shots,
on every machine, and however many orders are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import factorial

from fsdil_bench.errors import RequestError
from fsdil_bench.seeds import derive

Order = tuple[str, ...]


def possible_orders(own: Sequence[str], *, free_base: bool = False) -> int:
    """How many orders there are. Domains have different names."""
    return factorial(len(own) if free_base else max(0, len(own) - 1))


def draw_orders(own: Sequence[str], number: int, *, free_base: bool = False) -> list[Order]:
    """The first `number` orders, all different; the base stays first unless it is free."""
    base = () if free_base else tuple(own[:1])
    rest = own[len(base) :]
    possible = possible_orders(own, free_base=free_base)
    if number > possible:
        where = "with any base" if free_base else f"with the base '{own[0]}'"
        more = "" if free_base or len(own) < 2 else ", or let the base change too (--free-base)"
        raise RequestError(
            f"{number} orders are asked for, but the domains {', '.join(own)} have "
            f"{possible} {where}",
            f"Ask for at most {possible}{more}.",
        )
    found = {tuple(own): None}
    for draw in count():
        if len(found) >= number:
            break
        ranks = {name: derive(draw, "order of domains", *own, name) for name in rest}
        found[base + tuple(sorted(rest, key=ranks.__getitem__))] = None
    return list(found)[:number]
