"""The protocol's loop from a method that a test has built, and wants to look at afterwards."""

from __future__ import annotations

from typing import Any

from fsdil_bench.plugins.method import Method
from fsdil_bench.runs.loop import Loop, Outcome


def run_loop(name: str, method: Method, *parts: Any, **options: Any) -> Outcome:
    """Go through the domains; `method` then is what the loop's last method was.

    The loop builds a method again after every domain; only the first is the one given.
    """
    given = [method]
    loop = Loop(
        name, lambda: given.pop() if given else type(method)(method.context), *parts, **options
    )
    outcome = loop.run()
    vars(method).update(vars(loop.method))
    return outcome
