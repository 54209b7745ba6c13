from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsdil_bench.sweeps.launchers.launcher import Resources, Task
from fsdil_bench.sweeps.launchers.slurm_job import as_given
from fsdil_bench.sweeps.worker import given_threads
from fsdil_bench.system import processors
from fsdil_bench.system.prefetch import default_workers
from fsdil_bench.system.processors import available, respect_limits


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with six processors and no limits; gives the folder of its control groups."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(processors, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(processors, "_OWN_CGROUP", tmp_path / "own")
    (tmp_path / "cgroup" / "jobs" / "one").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/jobs/one\n")
    return tmp_path / "cgroup"


def test_without_limits_all_visible_processors_count():
    assert available() == default_workers() == 6
    respect_limits()
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("group", ["jobs/one", "jobs", "."])
@pytest.mark.parametrize(("limit", "count"), [("max", 6), ("250000", 3), ("20000", 1), ("9e9", 6)])
def test_the_time_limit_of_any_group_above_counts(machine, group, limit, count):
    (machine / group / "cpu.max").write_text(f"{limit} 100000\n")
    assert available() == default_workers() == count


def test_the_older_kind_of_groups(machine):
    (machine / "cpu").mkdir()
    (machine / "cpu" / "cpu.cfs_period_us").write_text("100000")
    for quota, count in (("-1", 6), ("200000", 2)):
        (machine / "cpu" / "cpu.cfs_quota_us").write_text(quota)
        assert available() == count


def test_what_slurm_gave_counts(monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    assert available() == default_workers() == 4
    respect_limits()
    assert os.environ["OMP_NUM_THREADS"] == "4"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    respect_limits()
    assert os.environ["OMP_NUM_THREADS"] == "5"  # whoever sets it means it


def task(cpus):
    return Task("key", {}, Path("runs"), Path("scratch"), resources=Resources(cpus=cpus))


def test_a_run_of_a_sweep_uses_what_its_job_was_given(monkeypatch):
    assert as_given(task(2)).resources.cpus == given_threads(task(2)) == 2
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")  # by the partition, or `extra`
    given = as_given(task(1))
    assert given.environment()["OMP_NUM_THREADS"] == "4"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # as its process is started
    assert given_threads(task(1)) == 4
