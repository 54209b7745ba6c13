"""Runs in Weights & Biases: offline below `--out`, or online for those who are logged in.

WANDB_MODE, WANDB_DIR, WANDB_PROJECT and the other variables of W&B win over what is chosen here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import wandb

from fsdil_bench.records.record import Record
from fsdil_bench.runs.finished_domain import FinishedDomain
from fsdil_bench.runs.tracker import TrackedRun

from .values import domain_step, domain_values, environment, record_name, record_values, settings

_PROJECT = "fsdil-bench"
_COMPLETE = "fsdil-bench.complete"  # a file in W&B's folder of a run that has its scores


class WandbTracker:
    """Logs what the run in W&B does not have yet.

    Online, W&B says which steps it has. Offline nobody knows what of a killed process has reached
    the disk, so all is logged again and takes the place of what was there.
    """

    def __init__(self, run: TrackedRun) -> None:
        self._run = run
        self._wandb: wandb.Run | None = None
        self._set: list[str] = []
        below = os.environ.get("WANDB_DIR") or str(run.place.parent)
        earlier = list((Path(below) / "wandb").glob(f"*run-*-{run.unique_id}"))
        if not run.fresh and any((folder / _COMPLETE).exists() for folder in earlier):
            return
        self._own_folders()
        try:
            self._wandb = self._begun(below)
        except BaseException:
            self._leave_folders()
            raise
        self._step = self._wandb.starting_step - 1
        for folder in earlier:
            if folder.name.startswith("offline-") and self._wandb.offline:
                shutil.rmtree(folder, ignore_errors=True)

    def domain_finished(self, domain: FinishedDomain) -> None:
        """Log a domain."""
        step = domain_step(domain)
        if self._wandb is not None and step > self._step:
            self._wandb.log(domain_values(domain), step=step, commit=True)

    def run_finished(self, record: Record) -> None:
        """Log the scores as the summary of the run, and the record."""
        if self._wandb is None:
            return
        self._wandb.summary.update(record_values(record))
        copy = wandb.Artifact(f"record-{self._run.unique_id}", type="record")
        with copy.new_file(record_name(self._run)) as file:
            file.write(record.to_json())
        self._wandb.log_artifact(copy)

    def close(self, *, complete: bool) -> None:
        """Say how the run ended, and wait until everything is written or sent."""
        try:
            if self._wandb is not None:
                self._wandb.finish(exit_code=0 if complete else 1)
                folder = Path(self._wandb.settings.sync_dir)
                if complete and folder.is_dir():  # there is none where W&B is disabled
                    (folder / _COMPLETE).touch()
        finally:
            self._leave_folders()

    def _begun(self, folder: str) -> wandb.Run:
        run, mode = self._run, _mode()
        Path(folder).mkdir(parents=True, exist_ok=True)
        return wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            dir=folder,
            id=run.unique_id,
            name=run.title,
            group=str(run.spec["scenario"]),
            job_type=str(run.spec["method"]),
            config={**settings(run), **environment(run)},
            resume=None if run.fresh or mode == "offline" else "allow",
            reinit="create_new",  # leave a run alone that the user's program has begun
            mode=mode,
            settings=wandb.Settings(
                silent=True,
                console="off",  # else it would stand between the program and its terminal
                disable_git=True,
                disable_job_creation=True,
                save_code=False,
            ),
        )

    def _own_folders(self) -> None:
        """Keep what W&B puts into the user's home folder beside the runs, unless it is told where.

        Its functions ask the environment.
        """
        for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
            if name not in os.environ:
                os.environ[name] = str(self._run.place)
                self._set.append(name)

    def _leave_folders(self) -> None:
        """Leave the environment as it was."""
        for name in self._set:
            os.environ.pop(name, None)
        self._set = []


def _mode() -> Any:
    """As the user says; offline for those who are not logged in, where W&B would ask for a key."""
    said = os.environ.get("WANDB_MODE")  # W&B itself may have looked before it was set
    return said or (None if _logged_in() else "offline")


def _logged_in() -> bool:
    try:
        return bool(wandb.login(prompt=False, verify=False))
    except TypeError:  # a version that cannot look without asking
        return bool(wandb.api.api_key)
