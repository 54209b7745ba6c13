"""Runs as event files of TensorBoard, one folder each.

Its curves have 32 bits: it does not show others. The record beside them, as text, has all digits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.runs.finished_domain import FinishedDomain
from fsdil_bench.runs.tracker import TrackedRun

from .values import (
    FINAL_MARK,
    MARK,
    domain_step,
    domain_values,
    environment,
    record_values,
    score_name,
    settings,
)


class TensorBoardTracker:
    """Writes what the run's event files do not hold yet."""

    def __init__(self, run: TrackedRun) -> None:
        folder = run.place / run.key
        if run.fresh:
            shutil.rmtree(folder, ignore_errors=True)
        self._run = run
        self._steps = _logged_steps(str(folder)) if folder.exists() else {}
        self._writer = SummaryWriter(str(folder))
        if not self._steps:
            self._writer.add_text("run", _table({**settings(run), **environment(run)}))

    def domain_finished(self, domain: FinishedDomain) -> None:
        """Log a domain."""
        step = domain_step(domain)
        if step not in self._steps.get(MARK, ()):
            self._log(domain_values(domain), step)

    def run_finished(self, record: Record) -> None:
        """Log the scores, also as those of the run's settings."""
        if FINAL_MARK in self._steps:
            return
        values = record_values(record)
        self._log(values, len(record.matrix))
        names = [score_name(metric) for metric in METRICS if score_name(metric) in values]
        self._writer.add_text("record", f"```json\n{record.to_json()}```")
        for summary in hparams(settings(self._run), {name: values[name] for name in names}):
            self._writer._get_file_writer().add_summary(summary)

    def close(self, *, complete: bool) -> None:
        """Close the file."""
        del complete
        self._writer.close()

    def _log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()


def _logged_steps(folder: str) -> dict[str, set[int]]:
    """The steps of each value that the event files of a folder hold."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(folder, size_guidance={"scalars": 0})  # all of them
    found.Reload()
    names: Iterable[str] = found.Tags()["scalars"]
    return {name: {event.step for event in found.Scalars(name)} for name in names}


def _table(values: Mapping[str, Any]) -> str:
    """A table in Markdown."""
    rows = [f"| {name} | {str(value).replace('|', '/')} |" for name, value in values.items()]
    return "\n".join(["| what | value |", "|---|---|", *rows])
