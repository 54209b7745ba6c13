"""The Slurm launcher with stand-ins for Slurm's commands: they note their calls and run jobs."""

from __future__ import annotations

import os
import signal
import stat
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from launching import QUICK, make_task, outcomes, wait_for_start
from sweep_processes import wait_for

from fsdil_bench.errors import RequestError
from fsdil_bench.sweeps.launchers.launcher import Launcher, LauncherSetup, Resources
from fsdil_bench.sweeps.launchers.slurm_launcher import SlurmOptions, launch

pytest.importorskip("submitit", reason="needs the extra 'slurm'")

# Jobs are started by `bash` in the background, each in a group of its own; their state and their
# process are files per job, there before it begins and removed when it is over.
COMMANDS = {
    "sbatch": """
        id=$(( $(cat $SLURM/next 2>/dev/null || echo 100) + 1 )); echo $id > $SLURM/next
        cp "$1" $SLURM/script-$id.sh
        array=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' "$1")
        if [ -z "$array" ]; then $SLURM/bin/start $id $id; else
          for i in $(seq 0 $array); do $SLURM/bin/start ${id}_$i $id $i; done; fi
        echo "Submitted batch job $id"
    """,
    "start": """
        export SLURM_JOB_ID=$1 SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=1 SLURM_PROCID=0
        if [ -n "$3" ]; then export SLURM_ARRAY_JOB_ID=$2 SLURM_ARRAY_TASK_ID=$3; fi
        echo RUNNING > $SLURM/state-$1
        setsid $SLURM/bin/job $1 $SLURM/script-$2.sh > /dev/null 2>&1 &
        echo $! > $SLURM/pid-$1
    """,
    "job": """
        while [ ! -s $SLURM/pid-$1 ]; do sleep 0.01; done
        bash $2
        if [ -e $SLURM/again-$1 ]; then rm $SLURM/again-$1; bash $2; fi
        rm -f $SLURM/state-$1 $SLURM/pid-$1
    """,
    "srun": """
        while [ "${1#--}" != "$1" ]; do
          case "$1" in --output|--error) shift 2;; *) shift;; esac; done
        exec "$@"
    """,
    "squeue": """
        for file in $SLURM/state-*; do
          [ -e "$file" ] && echo "${file#$SLURM/state-} $(cat $file)"; done; exit 0
    """,
    "scancel": """
        for id in "$@"; do [ -e $SLURM/pid-$id ] && kill -KILL -- -$(cat $SLURM/pid-$id)
          rm -f $SLURM/state-$id; done; exit 0
    """,
    "scontrol": "touch $SLURM/again-$2",
}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Slurm on this machine; gives its folder, where `calls` has every call."""
    place = tmp_path / "slurm"
    (place / "bin").mkdir(parents=True)
    for name, body in COMMANDS.items():
        script = place / "bin" / name
        note = f'echo "{name} $*" >> $SLURM/calls\n'
        script.write_text("#!/bin/bash\n" + note + textwrap.dedent(body).lstrip())
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SLURM", str(place))
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    # Jobs are processes of their own: the stand-in for the worker takes its place by name.
    (tmp_path / "python").mkdir()
    monkeypatch.setenv("FSDIL_TEST_WORKER", str(QUICK))
    site = (
        "import os, sys\n"
        "if 'FSDIL_TEST_WORKER' in os.environ:\n"
        "    from fsdil_bench.sweeps.launchers.launcher import Task\n"
        "    Task.command = lambda self, python=sys.executable: [\n"
        "        python, os.environ['FSDIL_TEST_WORKER'], str(self.request_file)]\n"
    )
    (tmp_path / "python" / "sitecustomize.py").write_text(site)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
    yield place
    for pid in place.glob("pid-*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it is over meanwhile
            os.killpg(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def launcher(tmp_path):
    opened = []

    def open_launcher(jobs=None, **options):
        options.setdefault("poll", 0.3)
        setup = LauncherSetup(tmp_path / "launcher", jobs, 1, SlurmOptions(**options))
        opened.append(launch(setup))
        return opened[-1]

    yield open_launcher
    for each in opened:
        each.close()


def calls(slurm, name):
    lines = (slurm / "calls").read_text().splitlines()
    return [line for line in lines if line.split()[0] == name]


def test_tasks_become_an_array_and_their_ends_are_reported(slurm, launcher, tmp_path):
    found = launcher(jobs=8, poll=600)
    assert found.capacity() == 8
    assert isinstance(found, Launcher)
    tasks = [make_task(tmp_path / "runs", method) for method in ("ok", "crash", "fail")]
    found.submit(tasks)
    ends, started = outcomes(found, 3)
    assert sorted(started) == sorted(task.key for task in tasks)
    assert [ends[task.key].kind for task in tasks] == ["finished", "lost", "failed"]
    assert ends[tasks[1].key].detail["signal"] == "SIGKILL"
    assert len(calls(slurm, "sbatch")) == 1
    assert not (slurm / "calls").read_text().count("squeue")  # nobody had to ask
    assert "--array=0-2%3" in (slurm / "script-101.sh").read_text()


def test_the_script_asks_for_what_the_runs_need(slurm, launcher, tmp_path):
    found = launcher(
        partition="gpu", account="lab", qos="low", time=90, gpus=0.5, warning=60,
        extra=("mail-type=END", "exclusive"), setup=("module load cuda",),
    )  # fmt: skip
    small = make_task(tmp_path / "runs", "ok", 0)
    large = make_task(tmp_path / "runs", "ok", 1, resources=Resources(4, 2, 16))
    found.submit([small, large])
    outcomes(found, 2)
    first, second = ((slurm / f"script-{id}.sh").read_text() for id in (101, 102))
    lines = {line.removeprefix("#SBATCH --") for line in first.splitlines() if "SBATCH" in line}
    assert {
        "partition=gpu", "account=lab", "qos=low", "time=90", "cpus-per-task=1", "gpus-per-node=1",
        "signal=USR2@60", "mail-type=END", "exclusive", "job-name=fsdil", "open-mode=append",
    } <= lines  # fmt: skip
    assert "module load cuda" in first
    assert not any(line.startswith("array") for line in lines)
    assert "cpus-per-task=4" in second
    assert "gpus-per-node=2" in second
    assert "mem=16GB" in second


@pytest.mark.parametrize("signals", [["SIGUSR2"], ["SIGTERM", "SIGUSR2"]])
def test_a_preempted_job_is_queued_again_and_goes_on(slurm, launcher, tmp_path, signals):
    """Slurm's signals reach all processes of a job."""
    found = launcher()
    task = make_task(tmp_path / "runs", "hang")
    found.submit([task])
    wait_for_start(found)
    wait_for((task.folder / "domain-0" / "result.json").exists)
    for name in signals:
        for process in [*running("quick_worker.py", task), *running("submitit.core._submit", task)]:
            os.kill(process, signal.Signals[name])
        if name == "SIGTERM":  # Slurm's other signal comes long after it
            wait_for(lambda: not list(running("quick_worker.py", task)))
    ends, started = outcomes(found, 1)
    assert started == []  # one "started" per task, however often Slurm starts it
    assert ends[task.key].kind == "finished"
    assert calls(slurm, "scontrol") == ["scontrol requeue 101"]
    assert "domain 0 is done" in task.log.read_text()


def running(part, task):
    """The processes with this in their command, below the folder of this test."""
    root = str(task.scratch).partition("/runs/")[0]
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            command = (path / "cmdline").read_bytes().decode()
            if part in command and root in command and "python" in command.partition("\0")[0]:
                yield int(path.name)


@pytest.mark.parametrize("force", [False, True])
def test_cancel_a_running_job(slurm, launcher, tmp_path, force):
    found = launcher()
    task = make_task(tmp_path / "runs", "hang")
    found.submit([task])
    wait_for_start(found)
    wait_for((task.folder / "domain-0" / "result.json").exists)
    found.cancel([task.key, "unknown"], force=force)
    event = outcomes(found, 1)[0][task.key]
    assert event.kind == ("lost" if force else "failed")
    assert (calls(slurm, "scancel") if force else ["scancel 101"]) == ["scancel 101"]


def test_a_waiting_job_is_taken_from_the_queue(slurm, launcher, tmp_path):
    (slurm / "bin" / "start").write_text("#!/bin/bash\necho PENDING > $SLURM/state-$1\n")
    found = launcher()
    tasks = [make_task(tmp_path / "runs", "ok", i) for i in range(2)]
    found.submit(tasks)
    assert found.poll(1.0) == []
    found.cancel([task.key for task in tasks])
    ends, started = outcomes(found, 2)
    assert {event.kind for event in ends.values()} == {"lost"}
    assert not started
    assert calls(slurm, "scancel") == ["scancel 101_0 101_1"]


@pytest.mark.parametrize("state", ["NODE_FAIL", "gone"])
def test_a_job_that_ends_without_a_word_is_lost(slurm, launcher, tmp_path, state):
    (slurm / "bin" / "start").write_text("#!/bin/bash\necho PENDING > $SLURM/state-$1\n")
    found = launcher()
    task = make_task(tmp_path / "runs", "ok")
    found.submit([task])
    assert found.poll(1.0) == []
    if state == "gone":
        (slurm / "state-101").unlink()
    else:
        (slurm / "state-101").write_text(state)
    event = outcomes(found, 1)[0][task.key]
    assert event.kind == "lost"
    assert state in event.detail["reason"]


def test_a_silent_slurm_loses_nothing(slurm, launcher, tmp_path):
    (slurm / "bin" / "start").write_text("#!/bin/bash\n")
    (slurm / "bin" / "squeue").write_text("#!/bin/bash\necho down >&2; exit 1\n")
    found = launcher()
    found.submit([make_task(tmp_path / "runs", "ok")])
    assert found.poll(1.5) == []


def test_local_executor_of_submitit(tmp_path, launcher, slurm):
    """The real worker interface without any Slurm, as `cluster=local` offers."""
    found = launcher(jobs=1, cluster="local")
    assert found.capacity() == 1
    task = make_task(tmp_path / "runs", "ok")
    found.submit([task])
    assert outcomes(found, 1)[0][task.key].kind == "finished"
    task = make_task(tmp_path / "runs", "hang")
    found.submit([task])
    wait_for_start(found)
    found.cancel([task.key])
    assert outcomes(found, 1)[0][task.key].kind in ("failed", "lost")
    assert not (slurm / "calls").exists()


def test_without_slurm_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match="srun"):
        launch(LauncherSetup(tmp_path, options=SlurmOptions()))


def test_submitit_is_named_where_it_is_missing(tmp_path, monkeypatch):
    from fsdil_bench.plugins.registry import load_registry
    from fsdil_bench.sweeps.session import make_launcher

    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(RequestError, match=r"fsdil-bench\[slurm\]"):
        make_launcher(load_registry(), "slurm", {}, LauncherSetup(tmp_path))
