"""`fsdil-bench sweep` with real processes: what it says, what it leaves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweep_processes import TOY, children, contents, start, toy_sweep, wait_for, workers

from fsdil_bench import Record, cli
from fsdil_bench.exit_codes import BAD_INPUT
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.sweeps.launchers.launcher import LauncherSetup, Resources, Task
from fsdil_bench.sweeps.launchers.local import LocalLauncher, LocalOptions
from fsdil_bench.sweeps.worker import as_command, work


@pytest.fixture
def call(call):
    return lambda *arguments: call("sweep", "--plugin", TOY, "--threads", 1, *arguments)


def test_a_sweep_with_a_failing_method(call, tmp_path):
    cells = ["-m", "toy-means,toy-raisesinlearn", "-s", "toy-1shot", "--seeds", "0", "-j", 2]
    code, out, _ = call(*cells, "--dry-run", "--on=records")
    assert code == 0
    assert "2 runs: 2 missing. Left: unknown." in out
    assert not (tmp_path / "runs").exists()

    code, out, err = call(*cells, "--retries", "0")
    assert code == 1
    assert "[2/2]" in err
    assert "learn says the test" in out
    assert "1 done, 1 failed" in out or "1 failed, 1 done" in out
    failure = json.loads(
        next(Path("runs/toy-1shot/toy-raisesinlearn").glob("*/failure.json")).read_text()
    )
    assert failure["exit_code"] == 1
    assert any("ValueError: learn says the test" in line for line in failure["log_tail"])
    record = Record.load(next(Path("runs/toy-1shot/toy-means").iterdir()))
    assert record.provenance["threads"] == 1
    assert record.provenance["command"].startswith("fsdil-bench run --method toy-means")

    code, out, _ = call(*cells, "--dry-run", "--json", "--on=records")
    states = {cell["method"]: cell["state"] for cell in json.loads(out)["cells"]}
    assert states == {"toy-means": "done", "toy-raisesinlearn": "failed"}

    code, out, err = call("-m", "toy-means", "-s", "toy-1shot", "--json")
    summary = json.loads(out)
    assert (code, summary["counts"]) == (0, {"done": 1})
    assert summary["cells"][0]["attempts"] == 0


def test_wrong_requests_are_said_before_anything_runs(call, tmp_path):
    toy = ["-s", "toy-1shot", "-m"]
    for arguments, expected in [
        (["-s", "toy-1shot", "-m", "toy-meens"], "'toy-means'"),
        (["-s", "toi-1shot", "-m", "toy-means"], "'toy'"),
        ([*toy, "toy-means", "--set", "x=1"], "'x'"),
        ([*toy, "toy-means", "--launcher", "lokal"], "'local'"),
        ([*toy, "toy-means", "--launcher-set", "nise=1"], "nice"),
        ([*toy, "toy-means", "--seeds", "a"], "0-2"),
        ([*toy, "toy-means", "--time-limit", "x"], "time_limit"),
        (["nowhere.toml"], "nowhere.toml"),
        (["-m", "toy-means"], "scenarios is missing"),
    ]:
        code, _, err = call(*arguments)
        assert code == 2, err
        assert expected in err
        assert "Traceback" not in err
    assert not (tmp_path / "runs").exists()


def test_missing_data_blocks_its_cells_only(call):
    code, out, _ = call(
        "-m", "ncm,toy-means", "-s", "core50-1shot,toy-1shot", "--dry-run", "--json", "--on=records"
    )
    plan = json.loads(out)
    assert code == 0
    assert {cell["scenario"] for cell in plan["cells"]} == {"toy-1shot"}
    assert len(plan["blocked"]) == 2
    assert "fsdil-bench data get core50" in plan["blocked"][0]["reason"]


def test_another_run_than_planned_is_refused_before_it_computes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)  # the worker sets it
    request = {
        "method": "toy-means", "scenario": "toy-1shot", "seed": 0, "out": str(tmp_path / "runs"),
        "plugins": [str(TOY)], "precision": "fp32",
    }  # fmt: skip
    folder = tmp_path / "runs" / "toy-1shot" / "toy-means" / "seed0-ofothercode"
    task = Task("key", request, folder, tmp_path / "scratch", resources=Resources(cpus=1))
    task.scratch.mkdir()
    assert work(task) == BAD_INPUT
    outcome = json.loads(task.outcome_file.read_text())
    assert "where it was planned" in outcome["reason"]
    assert "same version" in outcome["remedy"]
    assert not (tmp_path / "runs").exists()


def test_cost_is_estimated_from_records(call, tmp_path):
    from sweep_fakes import write_record

    for name in ("a", "b"):
        write_record(tmp_path / "old" / name)
    for record in (tmp_path / "old").rglob("record.json"):
        record.write_text(record.read_text().replace('"m"', '"toy-means"'))
    (tmp_path / "old" / "c").mkdir()
    (tmp_path / "old" / "c" / "record.json").write_text("{")
    cells = ["-m", "toy-means,toy-router", "-s", "toy", "--shots", "1,4", "--dry-run", "-j", 2]
    code, out, _ = call(*cells, "--costs-from", "old", "--on=records")
    assert code == 0
    assert out.count(" 7 s ") == 2
    assert "Left: 7 s, 2 at a time, and 2 runs of unknown cost." in out


def test_interrupt_stops_cleanly_and_the_same_command_goes_on(tmp_path):
    command = toy_sweep(tmp_path, "-m", "toy-slow,toy-means", "-s", "toy-1shot")
    mark = tmp_path / "mark"
    process = start(command, TOY_SLEEP_IN="2", TOY_MARK=str(mark))
    wait_for(mark.exists)
    (worker,) = workers(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "the same command resumes" in out
    assert not Path(f"/proc/{worker}").exists()
    folder = next((tmp_path / "toy-1shot" / "toy-slow").iterdir())
    assert RunFolder(folder).finished_domains() == 2
    assert not (folder / "failure.json").exists()
    assert not (tmp_path / "toy-1shot" / "toy-means").exists()

    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert Record.load(folder).provenance["resumed_after"] == 2


def test_a_killed_sweep_leaves_no_process_behind(tmp_path):
    mark = tmp_path / "mark"
    command = toy_sweep(tmp_path, "-m", "toy-slow", "-s", "toy-1shot")
    process = start(command, TOY_SLEEP_IN="1", TOY_MARK=str(mark))
    wait_for(mark.exists)
    (worker,) = workers(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{worker}").exists(), 50)  # its sleep would last 60 s


@pytest.mark.slow
@pytest.mark.parametrize("warm", ["true", "false"])
def test_whatever_dies_takes_its_runs_along(tmp_path, warm):
    """The process that the runs are copies of is killed, or the run itself: the sweep continues."""
    mark = tmp_path / "mark"
    cells = ["-m", "toy-slow,toy-means", "-s", "toy-1shot", "--retries", 0, "--json"]
    command = toy_sweep(tmp_path / "runs", *cells, "--launcher-set", f"warm={warm}")
    process = start(command, TOY_SLEEP_IN="1", TOY_MARK=str(mark))
    wait_for(mark.exists)
    (worker,) = workers(process.pid)
    (child,) = children(process.pid)
    assert (child == worker) is (warm == "false")
    os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1, err
    states = {cell["method"]: cell["state"] for cell in json.loads(out)["cells"]}
    assert states == {"toy-slow": "failed", "toy-means": "done"}
    wait_for(lambda: not Path(f"/proc/{worker}").exists(), 50)


@pytest.mark.slow
def test_two_sweeps_at_once_never_run_a_cell_twice(tmp_path):
    cells = ["-m", "toy-means,toy-router", "-s", "toy-1shot", "--seeds", "0-2", "-j", 2]
    both = [start(toy_sweep(tmp_path / "runs", *cells)) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    logs = [path.read_text() for path in (tmp_path / "runs").glob("toy-1shot/*/*/log.txt")]
    assert len(logs) == 6
    for log in logs:
        assert log.count("domain 0 (d0)") == 1
        assert "Error" not in log


@pytest.mark.slow
def test_a_cell_of_another_sweep_is_taken_over_when_that_is_killed(tmp_path):
    mark = tmp_path / "mark"
    command = toy_sweep(tmp_path / "runs", "-m", "toy-slow", "-s", "toy-1shot")
    first = start(command, TOY_SLEEP_IN="2", TOY_MARK=str(mark))
    wait_for(mark.exists)
    second = start(command)
    seen = []
    for line in second.stderr:
        seen.append(line)
        if "elsewhere" in line:
            break
    first.kill()
    first.communicate()
    _, rest = second.communicate()
    assert second.returncode == 0, [*seen, rest]
    record = next((tmp_path / "runs").rglob("record.json"))
    assert Record.load(record.parent).provenance["resumed_after"] == 2


@pytest.mark.slow
def test_a_hang_costs_its_time_limit_and_one_run(tmp_path):
    command = toy_sweep(
        tmp_path, "-m", "toy-slow,toy-means", "-s", "toy-1shot", "-j", 2, "--retries", 0, "--json"
    )
    process = start(
        [*command, "--time-limit", "25"], TOY_SLEEP_IN="1", TOY_MARK=str(tmp_path / "mark")
    )
    out, err = process.communicate()
    assert process.returncode == 1, err
    cells = {cell["method"]: cell for cell in json.loads(out)["cells"]}
    assert cells["toy-means"]["state"] == "done"
    assert "time limit of 25 s" in cells["toy-slow"]["reason"]
    assert cells["toy-slow"]["seconds"] < 50


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 400 kB, where this process may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path, small_disk):
    """The disk fills up half-way; with room again, the same command completes the sweep."""
    cells = ["-m", "toy-means", "-s", "toy-1shot", "--seeds", "0-1", "--retries", 0]
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 360_000)
    full = subprocess.run(toy_sweep(small_disk / "runs", *cells), capture_output=True, text=True)
    assert full.returncode == 1, full.stdout
    assert "No space left" in full.stdout + full.stderr
    assert "Traceback" not in full.stderr
    ballast.unlink()
    again = subprocess.run(toy_sweep(small_disk / "runs", *cells), capture_output=True, text=True)
    assert again.returncode == 0, again.stdout + again.stderr
    elsewhere = subprocess.run(toy_sweep(tmp_path / "other", *cells), capture_output=True)
    assert elsewhere.returncode == 0
    assert contents(small_disk / "runs") == contents(tmp_path / "other")


def test_a_folder_that_cannot_be_written_is_named(call, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, _, err = call("-m", "toy-means", "-s", "toy-1shot", "--out", small_disk / "runs")
    assert code == 2
    assert "Read-only file system" in err
    assert "--out" in err


def make_task(tmp_path, code, **resources):
    """A task whose process runs some Python instead of a worker."""

    class Plain(Task):
        def command(self, python=sys.executable):
            return [python, "-c", code]

    scratch = tmp_path / f"task{len(list(tmp_path.iterdir()))}"
    scratch.mkdir()
    return Plain(scratch.name, {}, tmp_path / "run", scratch, 1, Resources(**resources))


def events(launcher, kinds, seconds=240):
    """Poll until events of these kinds have come."""
    found = []
    deadline = time.monotonic() + seconds
    while not set(kinds) <= {event.kind for event in found}:
        assert time.monotonic() < deadline, found
        found += launcher.poll(0.2)
    return found


def test_the_local_launcher_says_how_a_process_ended(tmp_path):
    launcher = LocalLauncher(2, LocalOptions(warm=False), tmp_path)
    launcher.submit([make_task(tmp_path, "import os; os.kill(os.getpid(), 11)")])
    (lost,) = [e for e in events(launcher, ["lost"]) if e.kind == "lost"]
    assert lost.detail["signal"] == "SIGSEGV"
    launcher.submit([make_task(tmp_path, "print('words'); raise SystemExit(7)")])
    (lost,) = [e for e in events(launcher, ["lost"]) if e.kind == "lost"]
    assert lost.detail["exit_code"] == 7
    assert lost.log.read_text() == "words\n"


def test_the_local_launcher_sets_threads_and_devices(tmp_path):
    code = "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['CUDA_VISIBLE_DEVICES'])"
    launcher = LocalLauncher(4, LocalOptions(warm=False, devices=("0", "1")), tmp_path)
    tasks = [make_task(tmp_path, code + "; input()", cpus=3) for _ in range(4)]
    launcher.submit(tasks)
    wait_for(lambda: all(task.log.exists() and task.log.read_text() for task in tasks))
    assert sorted(task.log.read_text() for task in tasks) == ["3 0\n", "3 0\n", "3 1\n", "3 1\n"]
    launcher.close()


def test_a_task_waits_for_memory(tmp_path, monkeypatch):
    free = {"MemTotal": 8e9, "MemAvailable": 3e9}
    monkeypatch.setattr("fsdil_bench.sweeps.launchers.local.memory", free.get)
    monkeypatch.setattr("fsdil_bench.sweeps.launchers.local.resident", lambda pid: 0.5e9)
    launcher = LocalLauncher(4, LocalOptions(warm=False), tmp_path)
    first, second = (make_task(tmp_path, "input()", memory_gb=2) for _ in range(2))
    launcher.submit([first, second])
    assert [e.key for e in launcher.poll(0.3)] == [first.key]  # 1.5 GB are still to be taken
    free["MemAvailable"] = 4e9
    assert [e.key for e in launcher.poll(0.3)] == [second.key]
    launcher.submit([make_task(tmp_path, "", memory_gb=9)])
    (failed,) = launcher.poll(0.1)
    assert "needs 9 GB, this machine has 8.0 GB" in failed.detail["reason"]
    assert failed.detail["retry"] is False
    launcher.close()


def test_cancel_and_close_reach_what_the_process_started(tmp_path):
    code = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '300']); print(p.pid, flush=True);"
        "p.wait()"
    )
    launcher = LocalLauncher(2, LocalOptions(warm=False, nice=1), tmp_path)
    task = make_task(tmp_path, code)
    launcher.submit([task])
    pid = int(wait_for(lambda: task.log.exists() and task.log.read_text()))
    launcher.cancel([task.key, "unknown"])
    events(launcher, ["lost"])
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 50)
    launcher.close()
    launcher.close()


def test_a_plugin_may_bring_a_launcher(call, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from fsdil_bench import LauncherInfo, hookimpl\n"
        "from fsdil_bench.sweeps.launchers.local import launch\n"
        "def mine(setup):\n"
        "    print('mine has', setup.jobs, 'jobs and', setup.threads, 'threads')\n"
        "    return launch(setup)\n"
        "@hookimpl\n"
        "def fsdil_launchers():\n"
        "    return [LauncherInfo('mine', 'my own', mine),\n"
        "            LauncherInfo('lacking', 'x', 'no_such_module:f', extra='ray')]\n"
    )
    request = ["--plugin", "mine.py", "-m", "toy-means", "-s", "toy-1shot", "-j", 3]
    code, out, _ = call(*request, "--launcher", "mine")
    assert code == 0
    assert "mine has 3 jobs and 1 threads" in out
    code, _, err = call(*request, "--launcher", "lacking")
    assert code == 2
    assert "pip install 'fsdil-bench[ray]'" in err


def test_requests_as_commands():
    request = {
        "method": "m", "scenario": "s-1shot", "seed": 3, "config": {"lr": 0.1}, "order": ["a", "b"],
        "sealed": True, "out": "/x", "plugins": ["p.py"], "base_limit": 4,
    }  # fmt: skip
    assert as_command(request) == [
        "fsdil-bench", "run", "--method", "m", "--scenario", "s-1shot", "--seed", "3",
        "--set", "lr=0.1", "--order", "a,b", "--sealed", "--plugin", "p.py", "--base-limit", "4",
    ]  # fmt: skip


def test_tasks_survive_their_file(tmp_path):
    task = Task("k", {"a": [1, None]}, tmp_path / "f", tmp_path / "s", 2, Resources(3, 0.5, 4, 60))
    assert Task.from_json(task.to_json()) == task
    assert LauncherSetup(tmp_path).jobs is None
    assert os.fspath(task.request_file) in task.command()


def test_launchers_are_listed_with_their_options(monkeypatch, capsys):
    for arguments, expected in (([], "one process per run"), (["local"], "--launcher-set")):
        monkeypatch.setattr(sys, "argv", ["fsdil-bench", "list", "launchers", *arguments])
        cli.main()
        assert expected in capsys.readouterr().out
