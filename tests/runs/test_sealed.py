"""Sealed runs: the same result for honest methods, and nothing to gain for others."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

import fsdil_bench
from fsdil_bench import Record, find_records
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.plugins import registry
from fsdil_bench.progress import Progress
from fsdil_bench.report.leaderboards import copy_records, write_leaderboards
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.runs.sealed import process as sealed_process
from fsdil_bench.runs.sealed.server import close_server
from fsdil_bench.runs.sealed.wire import Channel
from fsdil_bench.system import posix

TESTS = Path(__file__).parent.parent
WORLD = TESTS / "toy_world_plugin.py"
PLUGINS = [WORLD, TESTS / "toy_methods_plugin.py", TESTS / "sealed_plugin.py"]
CHANCE = 100 / 3


class Listener(Progress):
    def __init__(self):
        self.heard = []

    def say(self, text):
        self.heard.append(text)


@pytest.fixture
def run(tmp_path):
    def run(method, scenario="toy-1shot", **options):
        options = {"out": tmp_path / "runs", "sealed": True, "plugins": PLUGINS} | options
        registry._imported_here.clear()  # as if the ordinary run had been in another process
        return fsdil_bench.run(method, scenario, **options)

    return run


# Honest methods

OWN_STRATEGY = """
from fsdil_bench import MethodInfo, avalanche_method, hookimpl

def strategy(config, **parts):
    from avalanche.training.supervised import Naive
    return Naive(**parts)

Own = avalanche_method(strategy)

@hookimpl
def fsdil_methods():
    return [MethodInfo("own-strategy", "Avalanche's own fine-tuning", Own)]
"""


@pytest.mark.skipif(not posix.CAN_FORK, reason="a fork server imports it")
@pytest.mark.parametrize("method", ["avalanche-naive", "own-strategy"])
def test_importing_avalanche_is_not_suspicious(run, tmp_path, monkeypatch, method):
    """It lists fonts and opens a socket, and what it brings along makes temporary folders."""
    own, temporary = tmp_path / "own_strategy.py", tmp_path / "temporary"
    own.write_text(OWN_STRATEGY)
    temporary.mkdir()
    close_server()
    monkeypatch.setenv("TMPDIR", str(temporary))
    options = {"config": {"base_epochs": 1, "steps": 1}, "order": ["d0", "d1"]}
    record = run(method, plugins=[WORLD, own], **options)
    close_server()
    assert "suspicions" not in record.provenance
    assert not list(temporary.glob("*wandb*"))  # torch has a cache of its own there


@pytest.mark.parametrize(("own", "imported"), [(False, True), (True, False)])
def test_nobody_else_s_folder_is_imported_as_avalanche(tmp_path, own, imported):
    """Else code of a plugin would run in the fork server, where nothing is watched."""
    if own:
        (tmp_path / "avalanche").mkdir()
        (tmp_path / "avalanche" / "__init__.py").write_text("")
    said = (
        "import sys; from fsdil_bench.runs.sealed.libraries import import_libraries as load; "
        "load(['avalanche', 'json.tool']); print('avalanche' in sys.modules, "
        "'wandb' in sys.modules, 'json.tool' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", said], env=environment, capture_output=True)
    assert done.stdout.decode().split() == [str(imported), "False", "False"], done.stderr


@pytest.mark.parametrize(
    ("method", "scenario"),
    [
        ("toy-means", "toy-1shot"),
        ("toy-router", "seen-2shot"),
        ("everything", "seen-2shot"),
    ],
)
def test_an_honest_method_gets_the_same_result(run, method, scenario):
    ordinary = run(method, scenario, sealed=False)
    listener = Listener()
    sealed = run(method, scenario, progress=listener)
    assert sealed.run_id == ordinary.run_id
    assert sealed.predictions_sha256 == ordinary.predictions_sha256
    same = ("spec", "scenario", "matrix", "oracle_matrix", "routing", "unseen", "diagnostics")
    for name in (*same, "served" if method != "everything" else "audit"):
        assert getattr(sealed, name) == getattr(ordinary, name)
    assert sealed.folder != ordinary.folder
    assert sealed.provenance["ordinary_run"] == "same predictions"
    assert not [line for line in listener.heard if "warning" in line]
    for name in ("state_bytes", "trained_parameters"):
        assert sealed.cost[name] == ordinary.cost[name]
    assert sealed.cost["images"].get("learn") == ordinary.cost["images"].get("learn")
    assert sealed.cost["images"]["predict"] == ordinary.cost["images"]["predict"]
    assert min(sealed.cost["seconds"].values()) >= 0


@pytest.fixture
def new_interpreters(monkeypatch):
    """As on macOS: no process with torch is forked."""

    sealed_process.close_server()
    monkeypatch.setattr(posix, "CAN_FORK", False)
    yield
    sealed_process.close_server()


def test_without_forking_the_result_is_the_same(run, new_interpreters, monkeypatch):
    ordinary = run("toy-means", sealed=False)
    started = []
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda *a, real=subprocess.Popen, **k: started.append(a) or real(*a, **k),
    )
    found = run("toy-means")
    # One process to learn and one to predict, for each of four domains. What describes the plugins
    # may have run before.
    assert 8 <= len(started) <= 11
    assert found.predictions_sha256 == ordinary.predictions_sha256
    assert found.sealed


def test_without_forking_what_goes_wrong_is_said_too(run, new_interpreters):
    expected = "the process learning domain 1 ended with exit code 3; its last words: about to"
    with pytest.raises(PluginError, match=expected):
        run("exits")
    with pytest.raises(PluginError, match="ValueError in learn: learn says the test"):
        run("toy-raisesinlearn")


def test_the_record_says_so_and_an_ordinary_one_does_not(run):
    ordinary, sealed = run("toy-means", sealed=False), run("toy-means")
    assert sealed.sealed
    assert Record.load(sealed.folder) == sealed
    assert json.loads(sealed.to_json())["sealed"] is True
    assert "sealed" not in json.loads(ordinary.to_json())
    again = run("toy-means")  # it is not done again
    assert again.provenance["time"] == sealed.provenance["time"]


# What a method cannot do


@pytest.mark.parametrize("method", ["keepsinmodule", "keepsinclass"])
def test_what_is_kept_outside_the_state_is_lost(run, method):
    ordinary = run(method, sealed=False)
    assert ordinary.metrics["AA*"] > 90
    listener = Listener()
    sealed = run(method, progress=listener)
    assert sealed.metrics["AA*"] == pytest.approx(CHANCE)
    assert sealed.provenance["ordinary_run"] == "other predictions"
    assert any("made different predictions" in line for line in listener.heard)


def test_files_left_behind_are_lost(run):
    assert run("keepsinfiles").metrics["AA*"] == pytest.approx(CHANCE)


def test_nothing_of_test_images_is_kept(run):
    record = run("adaptswhilepredicting")
    assert record.diagnostics["per_domain"] == [{"seen": 0}] * 4


def test_the_seed_does_not_tell_the_order(run):
    assert run("rebuildstheorder", sealed=False).metrics["AA*"] < 60
    assert run("rebuildstheorder").metrics["AA*"] < 60


def test_the_oracle_cannot_be_remembered(run):
    tests = [30, 33, 36, 39]
    blind = [100 * tests[0] / sum(tests[: t + 1]) for t in range(4)]
    assert run("rememberstheoracle", sealed=False).routing[3] > blind[3] + 10
    assert run("rememberstheoracle").routing == pytest.approx(blind)


def test_there_is_nothing_to_be_found(run, tmp_path):
    record = run("looksaround")
    for found in record.diagnostics["per_domain"]:
        assert "asked for inside a sealed run" in found["stream"]
        assert found["files"] == []
        assert found["ids"] == ["0", "1"]
        assert os.environ["FSDIL_CACHE"] not in found["environment"]
        assert not Path(found["folder"]).is_relative_to(tmp_path)
        assert not Path(found["folder"]).exists()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("asksformore", "not those of its domain"),
        ("asksforothers", "not those of its domain"),
        ("toy-asksforearlier", "images of earlier domains"),
        ("toy-keepsdomains", "AttributeError in learn"),
        ("toy-raisesinbuild", "cannot be built, says the test"),
        ("toy-raisesinlearn", "ValueError in learn: learn says the test"),
        ("toy-raisesinpredict", "ValueError in predict: predict says the test"),
        ("toy-returnslogits", "float32 of shape"),
        ("toy-spoilsbackbone", "changed in place"),
        ("toy-undeclaredimages", "without declaring it"),
        ("toy-oddstate", "named tensors"),
    ],
)
def test_what_goes_wrong_is_said_as_in_an_ordinary_run(run, tmp_path, method, message):
    with pytest.raises(PluginError, match=message):
        run(method)
    assert not list((tmp_path / "runs").rglob("record.json"))
    assert "Traceback" in next((tmp_path / "runs").rglob("log.txt")).read_text()


def test_a_process_that_ends_is_one_clear_error(run, tmp_path):
    expected = "the process learning domain 1 ended with exit code 3; its last words: about to"
    with pytest.raises(PluginError, match=expected) as caught:
        run("exits")
    assert "log.txt" in caught.value.remedy
    assert "about to leave" in next((tmp_path / "runs").rglob("log.txt")).read_text()


def test_a_process_that_is_killed_is_one_too_and_the_run_goes_on(run, monkeypatch):
    with pytest.raises(PluginError, match=r"after domain 2 was killed by SIGKILL \(often"):
        run("iskilled")
    monkeypatch.setenv("SEALED_LIVE", "1")
    record = run("iskilled")
    assert record.provenance["resumed_after"] == 1
    assert record.matrix == run("toy-means", sealed=False).matrix


def test_changed_code_is_noticed(run, monkeypatch):
    from fsdil_bench.runs.lookup import Lookup

    monkeypatch.setattr(Lookup, "code", lambda self, factory: "older")
    with pytest.raises(FsdilError, match="have changed"):
        run("toy-means")


def test_a_sealed_base_is_shared_with_sealed_runs_only(run, tmp_path):
    run("toy-means", reuse_base=True, sealed=False)
    first = run("toy-means", reuse_base=True)
    second = run("toy-means", "toy-2shot", reuse_base=True)
    assert "base_from" not in first.provenance
    assert second.provenance["base_from"] == first.run_id


# Interruptions


def gone(pid):
    """Whether the process has ended, waiting a little."""
    deadline = time.monotonic() + 100  # the method waits longer
    while time.monotonic() < deadline:
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if status == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_interrupted_killed_and_resumed(tmp_path, run):
    out, temporary = tmp_path / "runs", tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "fsdil_bench", "run", "--sealed", "--out", str(out)]
    command += [word for plugin in PLUGINS for word in ("--plugin", str(plugin))]
    command += ["--method", "waits", "--scenario", "toy-1shot"]
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    stops = ((signal.SIGINT, 1, 130), (signal.SIGKILL, 2, -signal.SIGKILL))
    for stop, domain, expected in stops:
        own = {"SEALED_WAIT_IN": str(domain), "TMPDIR": str(temporary), "PYTHONPATH": paths}
        process = subprocess.Popen(command, env=os.environ | own, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 300
        while not (marks := list(temporary.glob("*/mark"))):  # in the process's own folder
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pid = int(marks[0].read_text())
        process.send_signal(stop)
        process.wait()
        process.stderr.close()
        assert process.returncode == expected
        assert gone(pid)
        [folder] = (out / "toy-1shot" / "waits").iterdir()
        assert RunFolder(folder).finished_domains() == domain
    resumed, whole = run("waits"), run("waits", out=tmp_path / "whole", sealed=False)
    assert resumed.folder == folder
    assert resumed.provenance["resumed_after"] == 2
    assert resumed.predictions_sha256 == whole.predictions_sha256


# Boards


def test_boards_mark_sealed_results_where_there_are_some(run, tmp_path):
    for seed in (0, 1):
        run("toy-means", sealed=False, seed=seed)
    run("toy-router", sealed=False)
    records = [
        dataclasses.replace(r, method={k: v for k, v in r.method.items() if k != "plugin"})
        for r in find_records(tmp_path / "runs")
    ]
    write_leaderboards(records, tmp_path / "without")
    assert "sealed" not in next((tmp_path / "without").glob("toy-1shot*.md")).read_text()
    assert "sealed" not in next((tmp_path / "without").glob("toy-1shot*.csv")).read_text()

    first = next(r for r in records if r.spec["method"] == "toy-means")
    sealed = dataclasses.replace(first, sealed=True, metrics=first.metrics | {"AA*": 1.0})
    for given in ([*records, sealed], [sealed, *records]):  # the sealed one counts, in any order
        write_leaderboards(given, tmp_path / "with")
        table = pd.read_csv(next((tmp_path / "with").glob("toy-1shot*.csv"))).set_index("method")
        assert table["sealed"].to_dict() == {"toy-means": 1, "toy-router": 0}
        assert table.loc["toy-means", "seeds"] == 2
        assert table.loc["toy-means", "AA*"] < 60
        page = next((tmp_path / "with").glob("toy-1shot*.md")).read_text()
        assert "| 1 of 2 " in page
        assert "shared the method's state alone" in page


def test_both_kinds_of_run_can_be_published_together(run, tmp_path):
    run("toy-means", sealed=False)
    run("toy-means")
    records = find_records(tmp_path / "runs")
    copy_records(records, tmp_path / "out")
    assert sorted(r.sealed for r in find_records(tmp_path / "out")) == [False, True]


# The line between the processes


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_tensors_keep_their_layout(layout):
    from multiprocessing import Pipe

    one, other = Pipe()
    views = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5).to(memory_format=layout)
    Channel(one).send(
        "views", {"views": views, "part": views[:, :, 1], "number": views[0, 0, 0, 0]}
    )
    received = Channel(other).receive().tensors
    assert torch.equal(received["views"], views)
    assert received["views"].stride() == views.stride()
    assert torch.equal(received["part"], views[:, :, 1])
    assert received["number"].shape == ()
