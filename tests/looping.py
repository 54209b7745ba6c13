"""The protocol's loop from a method that a test has built, and wants to look at afterwards."""

from __future__ import annotations

from typing import Any

from fsdil_bench.data.scenario import Stream
from fsdil_bench.plugins.method import Method
from fsdil_bench.runs.executor import InProcess
from fsdil_bench.runs.loop import Loop, Outcome
from fsdil_bench.runs.pictures import Pictures


def run_loop(
    name: str,
    method: Method,
    stream: Stream,
    pictures: Pictures,
    seed: int,
    *parts: Any,
    **options: Any,
) -> Outcome:
    """Go through the domains; `method` then is what the loop's last method was.

    The loop builds a method again after every domain; only the first is the one given.
    """
    given = [method]
    executor = InProcess(
        name,
        lambda: given.pop() if given else type(method)(method.context),
        seed,
        pictures.backbone.device,
    )
    outcome = Loop(name, executor, stream, pictures, seed, *parts, **options).run()
    vars(method).update(vars(executor.method))
    return outcome
