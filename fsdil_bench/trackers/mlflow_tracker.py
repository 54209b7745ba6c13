"""Runs in MLflow: in a file below `--out`, or where MLFLOW_TRACKING_URI says.

An experiment holds the runs of one scenario. A run of the harness finds its own run there by a tag.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

# Set before the import: what somebody benchmarks is nobody else's business.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from fsdil_bench.errors import RequestError
from fsdil_bench.records.record import Record
from fsdil_bench.runs.finished_domain import FinishedDomain
from fsdil_bench.runs.tracker import TrackedRun
from fsdil_bench.system.locks import locked

from .values import (
    FINAL_MARK,
    MARK,
    domain_step,
    domain_values,
    environment,
    record_name,
    record_values,
    settings,
)

#: The tag that has the run's folder: by it a resumed run is found again.
TAG = "fsdil-bench.run"

_PATIENCE = 120.0  # seconds until the runs of a sweep have made the file, one after the other
_LONGEST = 500  # characters of a parameter, which older servers take
_AT_ONCE = 100  # parameters in one request, of which MLflow takes no more


@contextmanager
def _alone(run: TrackedRun, *, here: bool) -> Iterator[None]:
    """Make the file of runs with no other run at it: two would both make its tables."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of each table
    if not here:
        yield
        return
    run.place.mkdir(parents=True, exist_ok=True)
    stray = Path("mlruns")  # which some versions make in the working folder, and leave empty
    known = stray.exists()
    with locked(run.place / ".lock", _PATIENCE):
        yield
    if not known:
        with suppress(OSError):
            stray.rmdir()


class MLflowTracker:
    """Logs what the run in MLflow does not have yet."""

    def __init__(self, run: TrackedRun) -> None:
        self._run = run
        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri and set("?%") & set(str(run.place)):  # they mean something in an address
            raise RequestError(
                f"MLflow cannot keep its file below {run.place}: ? and % must not be in the path",
                "Choose another folder with --out, or set MLFLOW_TRACKING_URI.",
            )
        with _alone(run, here=not uri):
            self._client = MlflowClient(uri or f"sqlite:///{run.place / 'mlflow.db'}")
            experiment = self._experiment(None if uri else (run.place / "artifacts").as_uri())
            self._id = self._begun(experiment)

    def domain_finished(self, domain: FinishedDomain) -> None:
        """Log a domain."""
        step = domain_step(domain)
        if step not in self._logged(MARK):
            self._log(domain_values(domain), step)

    def run_finished(self, record: Record) -> None:
        """Log the scores and the record."""
        if not self._logged(FINAL_MARK):
            self._client.log_text(self._id, record.to_json(), record_name(self._run))
            self._log(record_values(record), len(record.matrix))

    def close(self, *, complete: bool) -> None:
        """Say how the run ended."""
        self._client.set_terminated(self._id, "FINISHED" if complete else "KILLED")

    def _experiment(self, artifacts: str | None) -> str:
        """The experiment of the scenario, made if there is none."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or str(self._run.spec["scenario"])
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name, artifact_location=artifacts))
            except MlflowException:  # another run has just made it, on a server
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _begun(self, experiment: str) -> str:
        """The run of an earlier process, or a new one with all parameters."""
        query = f"tags.`{TAG}` = '{self._run.key}'"
        for found in self._client.search_runs([experiment], query):
            earlier: str = found.info.run_id
            if not self._run.fresh:
                self._client.update_run(earlier, status="RUNNING")
                return earlier
            self._client.delete_run(earlier)
        spec = self._run.spec
        tags = {TAG: self._run.key, "method": spec["method"], "scenario": spec["scenario"]}
        made = self._client.create_run(experiment, run_name=self._run.title, tags=tags)
        new: str = made.info.run_id
        known = {**settings(self._run), **environment(self._run)}
        params = [Param(name, str(value)[:_LONGEST]) for name, value in known.items()]
        for i in range(0, len(params), _AT_ONCE):
            self._client.log_batch(new, params=params[i : i + _AT_ONCE])
        return new

    def _logged(self, name: str) -> set[int]:
        return {each.step for each in self._client.get_metric_history(self._id, name)}

    def _log(self, values: Mapping[str, float], step: int) -> None:
        """All at once: a domain is logged, or it is not."""
        now = int(1000 * time.time())
        self._client.log_batch(self._id, [Metric(k, v, now, step) for k, v in values.items()])
