"""How a run fares beside other busy processes, against its fair share of the processors.

A run on two processors, beside three processes that compute all the time, is one of four processes
and should get half a processor. Threads that wait for each other at every small operation can get
much less: one of them spins until its time is up, while the other waits for its turn. The time is
compared with that of the same run alone, whose processor seconds are what there is to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import NamedTuple

from fsdil_bench.system.processors import available

BUSY = 3
METHOD = (
    "cvlc", "--base-limit", "10",
    "--set", "base_epochs=1", "--set", "epochs=2", "--set", "least_views=20",
)  # fmt: skip


class Spent(NamedTuple):
    wall: float
    processor: float


def main() -> None:
    cores = available()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        run(folder, "warm-up", "ncm")
        alone = run(folder, "alone", *METHOD)
        with load():
            beside = run(folder, "beside", *METHOD)
    fair = max(alone.wall, alone.processor / (cores / (1 + BUSY)))
    for name, spent in ("alone", alone), (f"beside {BUSY} busy processes", beside):
        print(f"{name:28} {spent.wall:7.1f} s, processors {spent.processor:.1f} s")
    print(f"with a fair share            {fair:7.1f} s")
    print(f"beside others / fair share   {beside.wall / fair:7.2f} (at most 1.3)")


@contextmanager
def load():
    """Processes that compute all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(folder: str, name: str, method: str, *more: str) -> Spent:
    command = [sys.executable, "-m", "fsdil_bench", "run", "-q", "-m", method, "-s", "drawn-1shot"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--out", f"{folder}/{name}", *more], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    assert os.waitstatus_to_exitcode(status) == 0
    return Spent(wall, used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
