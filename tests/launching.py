"""Tasks for tests of launchers, and waiting for what becomes of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fsdil_bench.sweeps.launchers.launcher import Resources, Task

QUICK = Path(__file__).parent / "quick_worker.py"


def quick_command(self, python=sys.executable):
    """In place of `Task.command`."""
    return [python, str(QUICK), str(self.request_file)]


def make_task(out, method, number=0, **fields):
    key = f"toy-1shot/{method}/seed{number}"
    request = {"method": method, "scenario": "toy-1shot", "seed": number, "out": str(out)}
    request |= fields.pop("request", {})
    fields.setdefault("resources", Resources(cpus=1))
    attempt = fields.setdefault("attempt", 1)
    task = Task(key, request, out / key, out / "sweeps" / key / f"attempt-{attempt}", **fields)
    task.scratch.mkdir(parents=True)
    task.request_file.write_text(task.to_json())
    return task


def outcomes(launcher, count, seconds=240):
    """Poll until `count` tasks are over: their last events by key, and who was started."""
    ends, started = {}, []
    deadline = time.monotonic() + seconds
    while len(ends) < count:
        assert time.monotonic() < deadline, (ends, started)
        for event in launcher.poll(0.2):
            if event.kind == "started":
                started.append(event.key)
            else:
                assert event.key not in ends
                ends[event.key] = event
    return ends, started


def wait_for_start(launcher, count=1, seconds=240):
    started = 0
    deadline = time.monotonic() + seconds
    while started < count:
        assert time.monotonic() < deadline
        started += sum(event.kind == "started" for event in launcher.poll(0.2))
