"""Work done ahead in the background, its results taken in order.

Threads, not processes: decoding and resizing release Python's lock, pictures need not be copied
between processes, and a scenario's loader may be any callable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from .processors import available

T = TypeVar("T")
R = TypeVar("R")

_MOST_WORKERS = 8  # beyond, threads mostly wait for Python's lock, and the model with them


def default_workers() -> int:
    """One thread per processor this process may use, up to a limit."""
    return min(_MOST_WORKERS, available())


def ordered_map(
    function: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    ahead: int,
) -> Generator[R, None, None]:
    """`function` of every item, in order, begun at most `ahead` items before it is asked for.

    Items are taken in the caller's thread, `function` runs in `workers` others (0: in the caller's,
    when asked). An exception is raised where its item would have come. All threads have ended when
    the iterator has, also if it is closed early.
    """
    if workers < 1:
        yield from map(function, items)
        return
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers, "prefetch")
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
