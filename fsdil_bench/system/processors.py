"""How many processors this process may use, which on shared machines are not all there are.

A scheduler may pin a process to some processors, a container may limit its time on them (cgroups),
and Slurm says how many a task was given even where it enforces nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def available() -> int:
    """The processors that this process may use, at least one."""
    return max(1, min(_visible(), *_limits()))


def slurm_cpus() -> int | None:
    """The processors that Slurm gave this task; None outside of Slurm."""
    text = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return int(text) if text.isdecimal() and int(text) else None


def respect_limits() -> None:
    """Let numerical libraries that are loaded later use no more threads than are available.

    They know how many processors are visible, but no other limit.
    """
    count = available()
    if count < _visible():
        os.environ.setdefault("OMP_NUM_THREADS", str(count))


def _visible() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _limits() -> Iterator[int]:
    yield _visible()
    if given := slurm_cpus():
        yield given
    with suppress(OSError, ValueError):  # version 1 of cgroups
        quota = int((_CGROUPS / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period = int((_CGROUPS / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii"))
        if quota > 0:
            yield math.ceil(quota / period)
    for group in _own_groups():
        with suppress(OSError, ValueError):
            quota_text, period_text = (group / "cpu.max").read_text(encoding="ascii").split()
            if quota_text != "max":
                yield math.ceil(int(quota_text) / int(period_text))


def _own_groups() -> Iterator[Path]:
    """The group of this process and those above it (version 2 of cgroups)."""
    with suppress(OSError):
        for line in _OWN_CGROUP.read_text(encoding="utf-8").splitlines():
            if line.startswith("0::"):
                place = _CGROUPS / line.removeprefix("0::").strip().lstrip("/")
                yield from (place, *(up for up in place.parents if up.is_relative_to(_CGROUPS)))
