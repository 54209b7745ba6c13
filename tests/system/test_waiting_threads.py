"""Threads that wait for each other: how long they spin depends on what else is running."""

from __future__ import annotations

import os

import pytest

from fsdil_bench.system import waiting_threads
from fsdil_bench.system.waiting_threads import wait_politely


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with four processors; gives a function that says how many processes run."""
    monkeypatch.setattr(waiting_threads, "available", lambda: 4)
    monkeypatch.setattr(waiting_threads, "_STAT", tmp_path / "stat")
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    yield lambda count: (tmp_path / "stat").write_text(f"cpu 1\nprocs_running {count}\nx 1\n")
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        os.environ.pop(name, None)


@pytest.mark.parametrize(("running", "sleeps"), [(1, False), (2, False), (3, True), (9, True)])
def test_threads_sleep_at_once_where_others_work(machine, running, sleeps):
    machine(running)  # this process is one of them
    wait_politely()
    assert os.environ.get("OMP_WAIT_POLICY") == ("PASSIVE" if sleeps else None)
    assert ("GOMP_SPINCOUNT" in os.environ) != sleeps


def test_a_moment_of_work_does_not_count(machine, monkeypatch):
    counts = iter([9, 1, 9])
    monkeypatch.setattr(waiting_threads, "_running", lambda: next(counts))
    wait_politely()
    assert "OMP_WAIT_POLICY" not in os.environ


def test_a_system_that_does_not_say_is_taken_for_free():
    wait_politely()
    assert "GOMP_SPINCOUNT" in os.environ


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"])
def test_what_is_set_stays(machine, monkeypatch, name):
    machine(9)
    monkeypatch.setenv(name, "mine")
    wait_politely()
    assert os.environ[name] == "mine"
    assert ({"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ)) == {name}


def test_torch_is_not_loaded_before(tmp_path):
    """The variables are read when OpenMP is loaded: the command line sets them first."""
    import subprocess
    import sys

    script = (
        "import os, sys\n"
        "from fsdil_bench import cli\n"
        "sys.argv = ['fsdil-bench', '--version']\n"
        "cli.main()\n"
        "print('torch' in sys.modules,"
        " bool({'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT'} & set(os.environ)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split()[-2:] == ["False", "True"], done.stderr
