"""Sealed runs: the process of the harness does not import the method's plugin."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

import fsdil_bench
from fsdil_bench.cli import cli
from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.plugins import registry
from fsdil_bench.progress import Progress
from fsdil_bench.system import landlock

TESTS = Path(__file__).parent.parent
WORLD, METHODS = TESTS / "toy_world_plugin.py", TESTS / "toy_methods_plugin.py"

EVIL = """
    import os
    from fsdil_bench import MethodInfo, hookimpl
    from fsdil_bench.runs import evaluation
    from toy_plugin import Means

    print("imported by", os.getpid(), flush=True)

    def cheat(self, tests, features, order, t, phase, routed, classes, *_):
        classes[:] = tests.labels
        return iter(())

    evaluation.Evaluation._predicted = cheat

    @hookimpl
    def fsdil_methods():
        return [MethodInfo("evil", "patches the harness", Means)]
"""
SPY = """
    import os, socket, subprocess, sys
    from pathlib import Path
    from fsdil_bench import Method, MethodInfo, hookimpl
    from toy_plugin import Means

    def attempt(action):
        try:
            return str(action())
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    class Spy(Means):
        def learn(self, domain):
            super().learn(domain)
            target = Path(os.environ["SPY_TARGET"])
            self.found = {
                "file": attempt(lambda: (target / "kept").write_text("all")),
                "own file": attempt(lambda: Path("kept").write_text("all")),
                "library": attempt(lambda: os.system(f"echo all > {target}/kept2")),
                "secret": attempt((target / "secret").read_text),
                "program": attempt(lambda: subprocess.run(["true"])),
                "network": attempt(lambda: socket.create_connection(("127.0.0.1", 9), 1)),
                "import": attempt(lambda: __import__("fsdil_scenarios.drawn.build")),
                "backbone": attempt(lambda: __import__("fsdil_scenarios.tiny_clip.backbone")),
            }

        def diagnostics(self):
            return self.found

    @hookimpl
    def fsdil_methods():
        return [MethodInfo("spy", "looks around", Spy)]
"""


class Listener(Progress):
    def __init__(self):
        self.heard = []

    def say(self, text):
        self.heard.append(text)


@pytest.fixture
def run(tmp_path):
    def run(method, scenario="toy-1shot", plugins=(), **options):
        options = {"out": tmp_path / "runs", "sealed": True} | options
        registry._imported_here.clear()
        return fsdil_bench.run(method, scenario, plugins=[WORLD, *plugins], **options)

    return run


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return write


@pytest.fixture(autouse=True)
def same_harness(guarded):
    """What an ordinary run lets a plugin do to the harness ends with the test."""
    from fsdil_bench.runs.evaluation import Evaluation

    kept = Evaluation._predicted
    yield
    Evaluation._predicted = kept


def test_a_patched_harness_changes_no_sealed_result(run, written):
    honest = run("toy-means", plugins=[METHODS])
    record = run("evil", plugins=[written("evil.py", EVIL)])
    assert record.matrix == honest.matrix
    assert record.method["plugin"] == "evil.py"
    assert "suspicions" not in record.provenance
    assert "fsdil_plugin_evil" not in sys.modules
    log = (record.folder / "log.txt").read_text()
    assert "imported by" in log
    assert f"imported by {os.getpid()}\n" not in log


def test_neither_does_the_command_line_import_it(written, tmp_path):
    evil = written("evil2.py", EVIL)
    words = ["run", "--sealed", "-m", "evil", "-s", "toy-1shot", "-q", "--out", str(tmp_path / "r")]
    words += ["--plugin", str(WORLD), "--plugin", str(evil)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "fsdil_plugin_evil2" not in sys.modules


def test_an_ordinary_run_with_a_patched_harness_fails(run, written):
    named = r"fsdil_bench\.runs\.evaluation\.Evaluation\._predicted"
    with pytest.raises(PluginError, match=f"a plugin has changed the harness: {named}") as caught:
        run("evil", plugins=[written("evil.py", EVIL)], sealed=False)
    assert "evil.py" in caught.value.remedy


def test_so_does_a_run_of_a_method_that_another_plugin_has_changed(run, written, monkeypatch):
    from fsdil_methods.frozen.ncm import NearestClassMean as Ncm

    monkeypatch.setattr(Ncm, "predict", Ncm.predict)  # so that it is put back
    sabotage = """
        from fsdil_bench import hookimpl
        from fsdil_methods.frozen.ncm import NearestClassMean as Ncm
        Ncm.predict = lambda self, batch: batch.features.argmax(1) * 0

        @hookimpl
        def fsdil_methods():
            return []
    """
    with pytest.raises(PluginError, match=r"changed the harness: .*NearestClassMean\.predict"):
        run("ncm", plugins=[written("sabotage.py", sabotage)], sealed=False)


def test_plugins_of_no_concern_are_not_imported(run, written):
    record = run("ncm", plugins=[written("evil.py", EVIL)])
    assert "plugin" not in record.method
    assert record.provenance["trusts"] == {"scenario": WORLD.name, "backbone": WORLD.name}
    assert "evil.py" not in record.provenance["plugins"]
    log = record.folder / "log.txt"
    assert "imported by" not in log.read_text()


def test_method_and_scenario_of_one_plugin_are_refused(run):
    with pytest.raises(RequestError, match="offers both the method 'toy-means' and the scenario"):
        fsdil_bench.run("toy-means", "toy-1shot", plugins=[TESTS / "toy_plugin.py"], sealed=True)


def test_method_and_backbone_of_one_plugin_are_refused(run):
    options = {"plugins": [TESTS / "toy_plugin.py"], "sealed": True, "backbone": "mute-clip"}
    with pytest.raises(RequestError, match="offers both the method 'toy-means' and the backbone"):
        fsdil_bench.run("toy-means", "drawn-1shot", **options)


def test_a_plugin_that_cannot_be_imported_is_named(run, written):
    broken = written("broken.py", "raise RuntimeError('says the test')\n")
    with pytest.raises(RequestError, match="no plugin offers the method 'x'") as caught:
        run("x", plugins=[broken])
    assert "plugin 'broken': cannot be imported: RuntimeError: says the test" in str(caught.value)


def test_options_are_checked_without_the_plugin(run):
    with pytest.raises(RequestError, match="unknown option of method toy-means: 'lr'"):
        run("toy-means", plugins=[METHODS], config={"lr": "1"})


def test_an_importing_harness_is_in_the_record(run, tmp_path):
    loaded = registry.load_registry([WORLD, METHODS])
    options = {"registry": loaded, "sealed": True, "out": tmp_path / "runs"}
    record = fsdil_bench.run("toy-means", "toy-1shot", **options)
    assert any(METHODS.name in sentence for sentence in record.provenance["suspicions"])


@pytest.mark.parametrize("protected", [True, False])
def test_what_a_method_does_beside_its_work_is_in_the_record(
    run, written, tmp_path, monkeypatch, protected
):
    if not protected:
        monkeypatch.setattr(landlock, "version", lambda: 0)
    elif not landlock.version():
        pytest.skip("this kernel has no Landlock")
    target = tmp_path / "runs" / "toy-1shot" / "other"
    target.mkdir(parents=True)
    (target / "secret").write_text("labels")
    monkeypatch.setenv("SPY_TARGET", str(target))
    listener = Listener()
    record = run("spy", plugins=[written("spy.py", SPY)], progress=listener)
    found = record.diagnostics["per_domain"][0]
    assert found["own file"] == "3"
    assert "cannot be imported inside a sealed run" in found["import"]
    assert found["backbone"].startswith("<module")
    assert (target / "kept").exists() != protected
    assert (target / "kept2").exists() != protected
    assert ("PermissionError" in found["file"]) == protected
    base = "the process learning domain 1 "
    for sentence in (
        "wrote outside its own folder: kept",
        "read what belongs to the harness: secret",
        "started a program: true",
        "used the network: ('127.0.0.1', 9)",
        "tried to import what makes a scenario: fsdil_scenarios.drawn",
    ):
        assert base + sentence in record.provenance["suspicions"]
    assert f"warning: {base}started a program: true" in listener.heard
    expected = ["processes", "audit"] + ["landlock"] * protected
    assert record.provenance["sealed_by"] == ", ".join(expected)
