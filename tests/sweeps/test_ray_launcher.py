"""The Ray launcher: its logic with a stand-in for Ray, and, where Ray is installed, a cluster."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import tarfile
import time
import types
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import pytest
from launching import make_task, outcomes, quick_command, wait_for_start

from fsdil_bench.errors import RequestError
from fsdil_bench.sweeps.launchers import ray_launcher
from fsdil_bench.sweeps.launchers.launcher import Launcher, LauncherSetup, Resources, Task
from fsdil_bench.sweeps.launchers.ray_launcher import RayLauncher, RayOptions
from fsdil_bench.sweeps.launchers.transfer import take_home
from fsdil_bench.system.archives import ArchiveError

TOY = Path(__file__).parent.parent / "toy_plugin.py"


class RayError(Exception):
    pass


class ActorDiedError(RayError):
    pass


class FakeRay:
    """As much of Ray as the launcher uses; actors are objects whose methods run in threads."""

    exceptions = types.SimpleNamespace(RayError=RayError)

    def __init__(self, **node):
        self.node = {"CPU": 2.0, "memory": 8e9} | node
        self.asked = []
        self.actors = []
        self.pool = ThreadPoolExecutor(8)

    def nodes(self):
        return [{"Alive": True, "Resources": self.node}, {"Alive": False, "Resources": {"CPU": 9}}]

    def remote(self, kind):
        fake = self

        def create():
            actor = types.SimpleNamespace(it=kind(), refs=[])
            for name in ("start", "wait", "stop"):
                method = getattr(actor.it, name)

                def call(*arguments, method=method):
                    ref = fake.pool.submit(method, *arguments)
                    actor.refs.append(ref)
                    return ref

                setattr(actor, name, types.SimpleNamespace(remote=call))
            fake.actors.append(actor)
            return actor

        def options(**asked):
            fake.asked.append(asked)
            return types.SimpleNamespace(remote=create)

        return types.SimpleNamespace(options=options)

    def wait(self, refs, num_returns, timeout):
        when = "FIRST_COMPLETED" if num_returns == 1 else "ALL_COMPLETED"
        done, rest = wait(refs, timeout, when)
        return list(done), list(rest)

    def get(self, ref):
        return ref.result()

    def kill(self, actor):
        if hasattr(actor.it, "_process"):
            actor.it._process.stop(force=True)

    def is_initialized(self):
        return True

    def lose_node(self):
        """Every actor is gone, and says so where a result is awaited."""
        for actor in self.actors:
            self.kill(actor)

    def shutdown(self):
        raise AssertionError("not ours")


@pytest.fixture
def launcher(monkeypatch, tmp_path):
    monkeypatch.setattr(Task, "command", quick_command)
    opened = []

    def open_launcher(fake, **options):
        setup = LauncherSetup(tmp_path / "launcher", None, 1, RayOptions(**options))
        opened.append(RayLauncher(fake, setup, own=False))
        return opened[-1]

    yield open_launcher
    for each in opened:
        each.close()


def test_events_of_all_kinds(launcher, tmp_path):
    ray = launcher(FakeRay())
    assert isinstance(ray, Launcher)
    assert ray.capacity() == 2
    tasks = [make_task(tmp_path, method) for method in ("ok", "crash", "fail")]
    ray.submit(tasks)
    ends, started = outcomes(ray, 3)
    assert sorted(started) == sorted(task.key for task in tasks)
    assert ends[tasks[0].key].kind == "finished"
    assert ends[tasks[1].key].kind == "lost"
    assert ends[tasks[1].key].detail["signal"] == "SIGKILL"
    assert ends[tasks[2].key].kind == "failed"
    assert ends[tasks[2].key].detail["reason"] == "no such data"
    assert "with 1 threads" in tasks[0].log.read_text()
    assert ray.poll(0) == []


def test_resources_are_asked_for(launcher, tmp_path):
    fake = FakeRay(GPU=1.0)
    ray = launcher(fake, gpus=0.5, memory_gb=2)
    ray.submit(
        [
            make_task(tmp_path, "ok", 0),
            make_task(tmp_path, "ok", 1, resources=Resources(2, 1, 3)),
        ]
    )
    outcomes(ray, 2)
    asked = [(a["num_cpus"], a["num_gpus"], a["memory"]) for a in fake.asked]
    assert asked == [(1, 0.5, 2 * 10**9), (2, 1, 3 * 10**9)]
    assert ray.capacity() == 2  # runs of half a GPU each


def test_what_no_node_can_take_is_refused(launcher, tmp_path):
    ray = launcher(FakeRay())
    task = make_task(tmp_path, "ok", resources=Resources(1, gpus=1))
    ray.submit([task])
    [event] = ray.poll(0)
    assert (event.kind, event.detail["retry"]) == ("failed", False)
    assert "1 GPU" in event.detail["reason"]
    ray = launcher(FakeRay(), autoscale=True)
    ray.submit([task])
    assert outcomes(ray, 1)[0][task.key].kind == "finished"  # the fake has no queue


@pytest.mark.parametrize("force", [False, True])
def test_cancel(launcher, tmp_path, force):
    ray = launcher(FakeRay())
    task = make_task(tmp_path, "hang")
    ray.submit([task])
    wait_for_start(ray)
    deadline = time.monotonic() + 240
    while not (task.folder / "domain-0").exists():  # by then it listens to signals
        assert time.monotonic() < deadline
        time.sleep(0.02)
    ray.cancel([task.key, "unknown"], force=force)
    event = outcomes(ray, 1)[0][task.key]
    if force:
        assert event.detail["signal"] == "SIGKILL"
    else:
        assert event.detail["reason"] == "interrupted"


def test_a_lost_node_is_reported(launcher, tmp_path, monkeypatch):
    fake = FakeRay()
    ray = launcher(fake)
    task = make_task(tmp_path, "hang")
    ray.submit([task])
    wait_for_start(ray)

    def get(ref):
        raise ActorDiedError(
            "The actor died unexpectedly before finishing this task.\n\tclass_name: Node\n"
            "The actor is dead because its node has died."
        )

    monkeypatch.setattr(fake, "get", get)
    fake.lose_node()
    event = outcomes(ray, 1)[0][task.key]
    assert event.kind == "lost"
    assert event.detail["reason"] == "The actor is dead because its node has died."


def test_a_node_without_the_shared_folder_is_named(launcher, tmp_path):
    ray = launcher(FakeRay())
    task = make_task(tmp_path, "ok")
    task.request_file.unlink()
    ray.submit([task])
    event = outcomes(ray, 1)[0][task.key]
    assert socket.gethostname() in event.detail["reason"]
    assert "transfer=true" in event.detail["remedy"]
    assert event.detail["retry"] is False


def test_transfer_brings_results_home(launcher, tmp_path, monkeypatch):
    """The worker runs in a folder of its own, with what was finished and the plugin files."""
    homes = []
    monkeypatch.setattr(
        "tempfile.TemporaryDirectory", lambda prefix: _Home(homes, tmp_path / "node")
    )
    plugin = tmp_path / "plugin.py"
    plugin.write_text("# a plugin")
    task = make_task(tmp_path / "here", "hang", request={"plugins": [str(plugin)]})
    (task.folder / "domain-0").mkdir(parents=True)
    (task.folder / "domain-0" / "result.json").write_text('{"domain": "from before"}')
    (task.folder / "domain-9.tmp").mkdir()
    ray = launcher(FakeRay(), transfer=True)
    ray.submit([task])
    assert outcomes(ray, 1)[0][task.key].kind == "finished"
    assert json.loads((task.folder / "record.json").read_text()) == {
        "key": task.key,
        "plugins": ["# a plugin"],
    }
    assert "from before" in (task.folder / "domain-0" / "result.json").read_text()
    assert json.loads((task.folder / "domain-1" / "result.json").read_text()) == {"domain": 1}
    assert "domain 0 is done" in task.log.read_text()
    assert homes == ["cleaned"]
    assert not list(task.scratch.glob("incoming*"))


class _Home:
    def __init__(self, homes, place):
        place.mkdir()
        self.name = str(place)
        self.cleanup = lambda: homes.append("cleaned")


def test_transfer_holds_the_run_meanwhile(launcher, tmp_path):
    from fsdil_bench.runs.run_folder import RunFolder

    task = make_task(tmp_path / "here", "hang")
    one, other = launcher(FakeRay(), transfer=True), launcher(FakeRay(), transfer=True)
    one.submit([task])
    wait_for_start(one)
    other.submit([task])
    [event] = other.poll(0)
    assert event.detail["exit_code"] == 75
    one.close()
    assert not RunFolder(task.folder).held()


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "run/../../outside"])
def test_a_parcel_writes_nothing_outside(tmp_path, name):
    task = make_task(tmp_path / "here", "ok")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 3
        tar.addfile(member, io.BytesIO(b"bad"))
    with pytest.raises(ArchiveError):
        take_home(task, buffer.getvalue())
    assert not list(tmp_path.rglob("outside"))
    assert not task.folder.exists()


def test_an_address_that_does_not_answer(tmp_path):
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for address, message in (
        (f"127.0.0.1:{port}", "no Ray cluster answers"),
        (f"ray://127.0.0.1:{port}", "no Ray cluster answers"),
        ("somewhere", "is no address"),
    ):
        options = RayOptions(address=address, timeout=3)
        with pytest.raises(RequestError, match=message):
            ray_launcher.launch(LauncherSetup(tmp_path, options=options))


def test_ray_is_named_where_it_is_missing(tmp_path, monkeypatch):
    from fsdil_bench.plugins.registry import load_registry
    from fsdil_bench.sweeps.session import make_launcher

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RequestError, match=r"fsdil-bench\[ray\]"):
        make_launcher(load_registry(), "ray", {}, LauncherSetup(tmp_path))


def sweep_command(out, *more):
    return [
        sys.executable, "-m", "fsdil_bench", "sweep", "--plugin", str(TOY),
        "--methods", "toy-means,toy-router", "--scenarios", "toy-1shot", "--seeds", "0-1",
        "--out", str(out), "--json", *more,
    ]  # fmt: skip


def predictions(out):
    from fsdil_bench import Record

    records = [Record.load(path.parent) for path in out.glob("toy-1shot/*/*/record.json")]
    return {record.run_id: record.predictions_sha256 for record in records}


def at_work(raylet):
    """Whether a worker that descends from this process has begun, and has not got far."""
    parents, workers = {}, {}
    for path in Path("/proc").iterdir():
        with suppress(OSError, IndexError):
            parents[path.name] = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_bytes().decode().split("\0")
            if "fsdil_bench.sweeps.worker" in command:
                workers[path.name] = next(word for word in command if word.endswith(".json"))
    for pid, request in workers.items():
        while pid in parents and pid != str(raylet):
            pid = parents[pid]
        if pid == str(raylet):
            folder = Path(json.loads(Path(request).read_text())["folder"])
            return not (folder / "spec.json").exists()
    return False


@pytest.mark.slow
@pytest.mark.parametrize("transfer", ["false", "true"])
def test_a_cluster_of_two_nodes_that_loses_one(tmp_path, monkeypatch, transfer):
    """The node is killed in the middle of a run: all records are there, as from one machine."""
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    local = subprocess.run(
        sweep_command(tmp_path / "local", "--jobs", "2"), capture_output=True, text=True
    )
    assert local.returncode == 0, local.stderr

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        sweep = subprocess.Popen(
            sweep_command(
                tmp_path / "ray", "--launcher", "ray", "--launcher-set", f"transfer={transfer}",
                "--launcher-set", f"address={cluster.address}",
            ),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 300
        raylet = node.all_processes["raylet"][0].process.pid
        while not (predictions(tmp_path / "ray") and at_work(raylet)):
            assert sweep.poll() is None, sweep.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        cluster.remove_node(node, allow_graceful=False)
        out, err = sweep.communicate(timeout=300)
    finally:
        cluster.shutdown()
    assert sweep.returncode == 0, err
    summary = json.loads(out)
    assert summary["counts"] == {"done": 4}
    assert max(cell["attempts"] for cell in summary["cells"]) == 2
    assert predictions(tmp_path / "ray") == predictions(tmp_path / "local")
    assert len(predictions(tmp_path / "ray")) == 4
