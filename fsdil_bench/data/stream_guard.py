"""While a method is at work, nobody opens a stream: it would get test images with their labels.

The guard holds for the whole process, also for threads that a method has started.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fsdil_bench.errors import PluginError

_lock = threading.Lock()
_at_work = 0


@contextmanager
def no_streams() -> Iterator[None]:
    """Refuse every new stream; several runs may do so at the same time."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def check_allowed(stream: str) -> None:
    """Refuse if a method is at work."""
    if _at_work:
        raise PluginError(
            f"the stream '{stream}' was asked for while a method is at work",
            "A method gets its images through `learn` and `predict` alone.",
        )


def _count(change: int) -> None:
    global _at_work
    with _lock:
        _at_work += change
