"""Locks between processes, and what is said where they cannot work."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from fsdil_bench.errors import HeldError, RequestError
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.system.locks import is_locked, locked
from fsdil_bench.system.posix import require_posix

HOLD = """
import sys, time
from pathlib import Path
from fsdil_bench.runs.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the run in tmp_path."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_lock_is_held_against_others_and_ends_with_its_process(holder, tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.held()
    with pytest.raises(HeldError, match="another process"), folder.locked():
        pass
    holder.kill()
    holder.wait()
    assert not folder.held()
    with folder.locked():
        assert folder.held()
    assert not folder.held()


def test_asking_leaves_nothing_behind(tmp_path):
    assert not is_locked(tmp_path / "none" / "lock")
    assert not is_locked(tmp_path / "lock")
    assert not list(tmp_path.iterdir())


def test_asking_keeps_nobody_from_working(tmp_path):
    """Somebody asks all the time; the lock can be had, and is seen to be held and free again."""
    lock, stop = tmp_path / "lock", threading.Event()

    def ask():
        while not stop.wait(0.005):
            is_locked(lock)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(10):
            with locked(lock, patience=10) as ours:
                assert ours
                assert is_locked(lock)
    finally:
        stop.set()
        thread.join()
    assert not is_locked(lock)


def test_a_lock_serves_one_at_a_time_in_one_process_too(tmp_path):
    with locked(tmp_path / "lock") as first, locked(tmp_path / "lock", 0) as second:
        assert first
        assert not second
    with locked(tmp_path / "lock", 0) as again:
        assert again


@pytest.mark.parametrize("module", ["cache.claims", "runs.cost", "system.fork_server"])
def test_what_needs_posix_says_so(module):
    """As on Windows: the modules of POSIX are missing, and the message names the remedy."""
    # What it needs is imported first: libraries may not know what to do with the disguise.
    pretend = f"""
import importlib, os, sys
name = "fsdil_bench.{module}"
importlib.import_module(name)
del sys.modules[name]
os.name = "nt"
sys.modules["fcntl"] = sys.modules["resource"] = None
try:
    importlib.import_module(name)
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", pretend], capture_output=True, text=True)
    assert done.stdout.startswith("RequestError"), done.stdout + done.stderr
    assert "needs Linux or macOS" in done.stdout
    assert "WSL" in done.stdout


def test_here_nothing_is_said(monkeypatch):
    require_posix("this")
    monkeypatch.setattr("os.name", "nt")
    with pytest.raises(RequestError, match="this needs Linux or macOS"):
        require_posix("this")


def test_warm_sweeps_are_for_systems_that_can_fork(monkeypatch, tmp_path):
    from fsdil_bench.sweeps.launchers import local
    from fsdil_bench.sweeps.launchers.launcher import LauncherSetup

    monkeypatch.setattr(local, "CAN_FORK", False)
    setup = LauncherSetup(folder=tmp_path, jobs=1, options=local.LocalOptions(warm=True))
    with pytest.raises(RequestError, match="warm=true"):
        local.launch(setup)
    cold = LauncherSetup(folder=tmp_path, jobs=1, options=local.LocalOptions(warm=False))
    local.launch(cold).close()
