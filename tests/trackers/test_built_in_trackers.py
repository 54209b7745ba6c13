"""TensorBoard, MLflow and W&B, each with its real library that writes into a folder.

Whatever happens to a run, each holds every step of it once, and exactly the record's scores.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sweep_processes import TOY, sweep, toy_sweep
from tracker_readers import READERS, read_mlflow, read_wandb, whole_wandb_file

import fsdil_bench
from fsdil_bench import Record, RequestError
from fsdil_bench.plugins.descriptors import load_factory
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.loop import Loop

NAMES = [
    pytest.param(
        info.name,
        marks=pytest.mark.skipif(
            any(importlib.util.find_spec(module) is None for module in info.modules),
            reason=f"needs pip install 'fsdil-bench[{info.extra}]'",
        ),
    )
    for info in load_registry().trackers.values()
]
ALL = [name.values[0] for name in NAMES if not name.marks[0].args[0]]
every_tracker = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    """Nothing is logged in, nothing is set, and what is written into the home folder is noticed."""
    for variable in list(os.environ):
        if variable.startswith(("WANDB_", "MLFLOW_")):
            monkeypatch.delenv(variable)
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def check_logged(logged, record):
    """One run holds all of a record, and nothing twice."""
    kept = {32: lambda value: float(np.float32(value)), 64: float}[logged.bits]
    assert logged.steps() == list(range(1, len(record.matrix) + 1))
    for i, domain in enumerate(record.domain_names):
        column = [(t + 1, kept(row[i])) for t, row in enumerate(record.matrix) if t >= i]
        assert logged.curves[f"accuracy/{i + 1}-{domain}"] == column
    for metric, value in record.metrics.items():
        assert logged.final(metric.replace("*", "_star")) == kept(value)
    assert logged.final("AA_star/low") <= record.metrics["AA*"] <= logged.final("AA_star/high")
    assert logged.params["method"] == record.spec["method"]
    assert int(logged.params["seed"]) == record.seed
    assert logged.params["environment.device"] == "cpu"
    assert logged.record == (record.folder / "record.json").read_text()


@every_tracker
def test_everything_is_logged_below_out_and_nowhere_else(name, toy_run, runs, tmp_path):
    before = dict(os.environ)
    record = toy_run(track=[name])
    [logged] = READERS[name](runs)
    check_logged(logged, record)
    assert logged.ended in ("", "FINISHED", "0")
    lost = [logged.curves["seen/forgetting"][-1][1], record.matrix[0][0] - record.matrix[-1][0]]
    assert len(logged.curves["seen/forgetting"]) == 3
    assert all(abs(value) <= 100 for value in lost)
    assert logged.curves["diagnostics/largest sum"][0][1] > 0
    assert not list((tmp_path / "home").rglob("*"))
    assert not list((tmp_path / "here").rglob("*"))
    set_by_libraries = {"MLFLOW_DISABLE_TELEMETRY", "WANDB_SERVICE"}
    assert set(os.environ) - set_by_libraries == set(before) - set_by_libraries
    assert [each.run_id for each in fsdil_bench.find_records(runs)] == [record.run_id]


@every_tracker
def test_a_tracker_is_no_part_of_the_run(name, toy_run, toy_job, tmp_path):
    plain, tracked = toy_job(), toy_job(track=name)
    assert tracked.run_id == plain.run_id
    record = toy_run(track=[name])
    assert record.run_id == plain.run_id
    again = toy_run(out=tmp_path / "untracked")
    assert again.predictions_sha256 == record.predictions_sha256
    assert not (tmp_path / "untracked/trackers").exists()


@every_tracker
def test_an_interrupted_run_goes_on_where_it_was(name, toy_run, runs, monkeypatch):
    whole = Loop._run_domain

    def interrupted(self, t):
        if t == 2:
            raise KeyboardInterrupt
        return whole(self, t)

    monkeypatch.setattr(Loop, "_run_domain", interrupted)
    with pytest.raises(KeyboardInterrupt):
        toy_run(track=[name])
    [logged] = READERS[name](runs)
    assert logged.steps() == [1, 2]
    assert logged.ended in ("", "KILLED", "1")
    assert "AA_star" not in logged.curves

    monkeypatch.setattr(Loop, "_run_domain", whole)
    record = toy_run(track=[name])
    assert record.provenance["resumed_after"] == 2
    [logged] = READERS[name](runs)
    check_logged(logged, record)
    assert logged.ended in ("", "FINISHED", "0")


def test_a_killed_run_goes_on_where_it_was(tmp_path, runs):
    """SIGKILL leaves no library the time to close anything."""
    mark = tmp_path / "mark"
    command = [
        sys.executable, "-m", "fsdil_bench", "run", "--plugin", str(TOY), "--method", "toy-slow",
        "--scenario", "toy-1shot", "--out", str(runs), "--track", ",".join(ALL),
    ]  # fmt: skip
    waiting = os.environ | {"TOY_SLEEP_IN": "2", "TOY_MARK": str(mark)}
    process = subprocess.Popen(command, env=waiting, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not mark.exists():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()

    resumed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "resuming after domain 2 of 4" in resumed.stderr
    assert "warning" not in resumed.stderr
    [record] = fsdil_bench.find_records(runs)
    for name in ALL:
        [logged] = READERS[name](runs)
        check_logged(logged, record)


@every_tracker
def test_a_domain_that_was_kept_and_not_logged_is_logged_later(name, toy_run, runs, monkeypatch):
    """Killed between the two, or begun without a tracker: the run is whole in the end."""
    whole = Loop._run_domain

    def interrupted(self, t):
        if t == 2:
            raise KeyboardInterrupt
        return whole(self, t)

    monkeypatch.setattr(Loop, "_run_domain", interrupted)
    with pytest.raises(KeyboardInterrupt):
        toy_run()
    monkeypatch.setattr(Loop, "_run_domain", whole)
    record = toy_run(track=[name])
    [logged] = READERS[name](runs)
    check_logged(logged, record)


@every_tracker
def test_a_complete_run_can_be_logged_afterwards_and_only_once(name, toy_run, runs):
    record = toy_run()
    for _ in range(2):
        assert toy_run(track=[name]).folder == record.folder
        [logged] = READERS[name](runs)
        check_logged(logged, record)
        assert logged.ended in ("", "FINISHED", "0")


@every_tracker
def test_a_fresh_run_replaces_what_was_logged(name, toy_run, runs):
    toy_run(track=[name])
    record = toy_run(track=[name], fresh=True)
    [logged] = READERS[name](runs)
    check_logged(logged, record)


@every_tracker
def test_routers_and_a_sealed_run_beside_the_ordinary_one(name, toy_run, runs):
    ordinary = toy_run("toy-router", track=[name])
    sealed = toy_run("toy-router", track=[name], sealed=True)
    assert sealed.run_id == ordinary.run_id
    one, other = READERS[name](runs)
    for logged, record in ((one, ordinary), (other, sealed)):
        check_logged(logged, record)
        routing = [value for _, value in logged.curves["seen/routing"]]
        assert routing == pytest.approx(record.routing, rel=1e-6)
        oracle = record.oracle_metrics["AA*"]
        assert logged.final("oracle/AA_star") == pytest.approx(oracle, rel=1e-6)
    assert "sealed" in other.name
    read = [each for each in sealed.provenance.get("suspicions", []) if "had imported" not in each]
    assert not read


def test_the_runs_of_a_sweep_at_the_same_time(runs):
    """Each process logs its own run; two of them do not make MLflow's file at once."""
    command = toy_sweep(
        runs, "--methods", "toy-means,toy-router", "--scenarios", "toy-1shot", "--seeds", "0-1",
        "--jobs", 2, *(word for name in ALL for word in ("--track", name)),
    )  # fmt: skip
    code, said = sweep(command)
    assert code == 0, said
    records = fsdil_bench.find_records(runs)
    assert len(records) == 4
    assert "--track" in records[0].provenance["command"]
    for log in runs.rglob("log.txt"):
        assert "tracker" not in log.read_text()
    for name in ALL:
        found = READERS[name](runs)
        assert len(found) == 4
        for record in records:
            [logged] = [each for each in found if record.run_id in each.name]
            check_logged(logged, record)


@pytest.mark.skipif("mlflow" not in ALL, reason="needs pip install 'fsdil-bench[mlflow]'")
def test_mlflow_writes_where_its_variables_say(toy_run, runs, tmp_path, monkeypatch):
    uri = f"sqlite:///{tmp_path}/mine.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    record = toy_run(track="mlflow")
    assert not (runs / "trackers").exists()
    [logged] = read_mlflow(runs, uri)
    check_logged(logged, record)


@pytest.mark.skipif("mlflow" not in ALL, reason="needs pip install 'fsdil-bench[mlflow]'")
@pytest.mark.parametrize("folder", ["a b", "a#b", "ä"])
def test_mlflow_in_a_folder_of_any_name(toy_run, tmp_path, folder):
    record = toy_run(track="mlflow", out=tmp_path / folder)
    [logged] = read_mlflow(tmp_path / folder)
    check_logged(logged, record)


@pytest.mark.skipif("mlflow" not in ALL, reason="needs pip install 'fsdil-bench[mlflow]'")
@pytest.mark.parametrize("folder", ["a?b", "a%20b"])
def test_but_not_in_one_that_is_no_address(toy_run, tmp_path, folder):
    with pytest.raises(RequestError, match="must not be in the path"):
        toy_run(track="mlflow", out=tmp_path / folder)
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif("wandb" not in ALL, reason="needs pip install 'fsdil-bench[wandb]'")
def test_wandb_writes_where_its_variables_say(toy_run, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("WANDB_PROJECT", "my-project")
    monkeypatch.setenv("WANDB_MODE", "offline")
    toy_run(track="wandb")
    [file] = (tmp_path / "mine/wandb").glob("offline-run-*/*.wandb")
    assert "my-project" in {each.run.project for each in whole_wandb_file(file)}
    assert not read_wandb(runs)


@pytest.mark.skipif("wandb" not in ALL, reason="needs pip install 'fsdil-bench[wandb]'")
def test_wandb_is_online_for_those_who_are_logged_in(monkeypatch):
    from fsdil_bench.trackers import wandb_tracker

    assert wandb_tracker._mode() == "offline"
    monkeypatch.setattr(wandb_tracker.wandb, "login", lambda **_: True)
    assert wandb_tracker._mode() is None
    monkeypatch.setattr(wandb_tracker.wandb, "login", lambda **_: False)
    monkeypatch.setenv("WANDB_MODE", "shared")
    assert wandb_tracker._mode() == "shared"


def test_the_record_is_as_it_would_be_without(toy_run, tmp_path):
    """But for times, and the command."""
    tracked, plain = toy_run(track=ALL), toy_run(out=tmp_path / "plain")
    assert tracked.metrics == plain.metrics
    assert tracked.warnings == plain.warnings
    assert Record.load(tracked.folder).spec == plain.spec


def test_listing_imports_no_library():
    code = (
        "import sys; sys.argv = ['fsdil-bench', 'list', 'trackers'];"
        "from fsdil_bench.cli import cli; cli(standalone_mode=False);"
        "print('heavy:', sorted({'torch', 'tensorboard', 'mlflow', 'wandb'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "heavy: []" in result.stdout
    assert all(name in result.stdout for name in ("tensorboard", "mlflow", "wandb"))


@every_tracker
def test_it_is_what_its_descriptor_says(name):
    info = load_registry().tracker(name)
    tracker = load_factory(info.factory, name)
    assert {"domain_finished", "run_finished", "close"} <= set(vars(tracker))
    folder = Path(fsdil_bench.__file__).parent.parent
    assert f"\n{info.extra} = [" in (folder / "pyproject.toml").read_text()
