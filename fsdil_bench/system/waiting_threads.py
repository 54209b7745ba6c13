"""How the threads of torch wait for each other, so that a run gets on beside other processes.

At the end of every operation the threads of GNU's OpenMP wait for the slowest by spinning, about a
millisecond, before they sleep. On a busy machine the slowest has to wait for its turn while the
others burn theirs: beside three busy processes on two processors CVLC took nine times as long as
alone, and four times the processor time. Sleeping at once costs nothing there, but 40 % on a free
machine. The choice has to be made before torch is loaded, and changes no result:

- On a machine that is busy already, threads sleep at once.
- Elsewhere they spin for some ten microseconds. That costs 5 % on a free machine, and half as much
  as usual if it becomes busy later. (`python -m benchmarks contention` measures both.)
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from .processors import available

_SPINS = "10000"  # turns; GNU's default is 300,000
_STAT = Path("/proc/stat")
_LOOKS, _PAUSE = 3, 0.004  # seconds: a process that is ready for a moment only does not count


def wait_politely() -> None:
    """Let the OpenMP that is loaded later spin less, or not at all; whoever has set it means it."""
    if any(name in os.environ for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        return
    others = _others_at_work()
    if others and 2 * others >= available():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    else:
        os.environ["GOMP_SPINCOUNT"] = _SPINS


def _others_at_work() -> int:
    """How many other processes want to compute; 0 where the system does not say."""
    found = []
    for look in range(_LOOKS):
        time.sleep(_PAUSE if look else 0)
        found.append(_running())
    return max(0, min(found) - 1)


def _running() -> int:
    with suppress(OSError, ValueError):
        for line in _STAT.read_text(encoding="ascii").splitlines():
            if line.startswith("procs_running "):
                return int(line.split()[1])
    return 0
