"""A launcher without processes, and runs without methods, for tests of the scheduler."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fsdil_bench.exit_codes import BUSY
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.sweeps.launchers.launcher import Resources
from fsdil_bench.sweeps.plan import Cell


def make_cell(out: Path, number: int = 0, *, base: Path | None = None, limit=None) -> Cell:
    key = f"toy-1shot/m/seed{number}-id"
    request = RunRequest.of(method="m", scenario="toy-1shot", seed=number)
    return Cell(key, request, out, (), Resources(time_limit=limit), 4, base)


def write_record(folder: Path) -> None:
    """The record of a run of one domain that took seven seconds."""
    made = _made_records().make_record(
        folder / "made", "m", "toy-1shot", domains=1, images=5, threads=1
    )
    seconds = {"seconds": {"learn": 7.0}}
    record = replace(made, cost=made.cost | seconds | {"per_domain": [seconds | {"images": {}}]})
    (made.folder / "predictions.npz").rename(folder / "predictions.npz")
    shutil.rmtree(folder / "made")
    (folder / "record.json").write_text(record.to_json())


def _made_records():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent.parent))
        from benchmarks import made_records
    return made_records


class FakeLauncher:
    """`behave(task)` says what becomes of a task: "complete", "crash", "error", "hopeless",
    "elsewhere", "hang" (until it is cancelled), "deaf" (until it is killed) or "immortal"."""

    def __init__(self, behave=lambda task: "complete", jobs=2):
        self.behave, self.jobs = behave, jobs
        self.tasks, self.fates, self.cancelled, self.log = {}, {}, [], []
        self.most = 0
        self.closed = False

    def capacity(self):
        return self.jobs

    def submit(self, tasks):
        for task in tasks:
            assert json.loads(task.request_file.read_text())["key"] == task.key
            self.tasks[task.key] = task
            self.log.append((task.key, task.attempt))
        self.most = max(self.most, len(self.tasks))

    def poll(self, timeout):
        events = []
        for key, task in list(self.tasks.items()):
            if key not in self.fates:
                self.fates[key] = self.behave(task)
                events.append(task.event("started"))
            elif self.fates[key] not in ("hang", "deaf", "immortal"):
                del self.tasks[key]
                events.append(self.end(task, self.fates.pop(key)))
        return events

    def end(self, task, fate):
        if fate == "complete":
            write_record(task.folder)
            task.outcome_file.write_text('{"status": "complete"}')
            return task.ended(0)
        if fate == "crash":
            task.log.write_text("the last words")
            return task.ended(-9)
        outcome = {"status": "failed", "reason": f"it was {fate}", "retry": fate == "error"}
        if fate == "elsewhere":
            outcome["exit_code"] = BUSY
        task.outcome_file.write_text(json.dumps(outcome))
        return task.ended(1)

    def cancel(self, keys, *, force=False):
        for key in keys:
            self.cancelled.append((key, force))
            fate = self.fates.get(key)
            if fate == "hang" or (fate == "deaf" and force):
                self.fates[key] = "crash"

    def close(self):
        self.closed = True


class Clock:
    """A second goes by whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.2
        return self.now


class Heard:
    """A watcher that remembers."""

    def __init__(self):
        self.changes = []

    def changed(self, status):
        self.changes.append((status.cell.request.seed, status.name))

    def tick(self, board):
        self.board = list(board)
