"""Trackers of anybody, and the hook: when they are called, with what, and that none ends a run."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench.analysis.unfinished import find_unfinished
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.progress import Progress
from fsdil_bench.runs.finished_domain import of_record
from fsdil_bench.runs.loop import Loop
from fsdil_bench.sweeps.request import Selection
from fsdil_bench.sweeps.sweep_file import read_sweep
from fsdil_bench.sweeps.worker import as_command

TESTS = Path(__file__).parent.parent
TOY, PLUGIN = TESTS / "toy_plugin.py", TESTS / "tracker_plugin.py"


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    @property
    def warnings(self):
        return [line for line in self.lines if line.startswith("warning")]


@pytest.fixture
def said():
    return Said()


@pytest.fixture
def run(tmp_path, said):
    """Run with the plugin of trackers."""
    registry = load_registry([TOY, PLUGIN])
    heard = sys.modules["fsdil_plugin_tracker_plugin"].heard
    heard.clear()

    def call(*track, method="toy-means", **options):
        options = {"out": tmp_path / "runs", "progress": said, **options}
        if options.get("sealed"):
            parts = [TESTS / "toy_world_plugin.py", TESTS / "toy_methods_plugin.py", PLUGIN]
            options["plugins"] = parts
        else:
            options["registry"] = registry
        return fsdil_bench.run(method, "toy-1shot", track=track, **options)

    call.heard = heard
    return call


def lines(folder):
    [file] = folder.glob("*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_tracker_of_a_third_party(run, said, tmp_path):
    record = run("lines")
    told = lines(tmp_path / "runs/trackers/lines")
    assert [what for what, _ in told] == ["begun", *["domain"] * 4, "run", "close"]
    assert told[0][1]["title"] == "toy-means toy-1shot seed 0"
    assert told[0][1]["key"] == record.folder.relative_to(tmp_path / "runs").as_posix()
    assert [values["row"] for what, values in told if what == "domain"] == record.matrix
    assert not any(values["resumed"] for what, values in told if what == "domain")
    assert told[-2][1] == record.metrics
    assert told[-1][1] == {"complete": True}
    assert not said.warnings


def test_on_the_command_line(call):
    words = ["run", "-m", "toy-means", "-s", "toy-1shot", "--plugin", TOY, "--plugin", PLUGIN]
    code, _, err = call(*words, "--track", "lines", "--track", "fails-at-once")
    assert code == 0
    assert err.count("warning: tracker 'fails-at-once': OSError: there is no server") == 1
    assert len(lines(Path("runs/trackers/lines"))) == 7
    code, out, _ = call("list", "trackers", "--plugin", PLUGIN)
    assert code == 0
    assert "lines of JSON" in out
    assert "fsdil-bench[mlflow]" in out


def test_no_plugin_takes_a_built_in_name():
    registry = load_registry([PLUGIN])
    assert registry.tracker("mlflow").extra == "mlflow"
    assert "tracker 'mlflow' is already provided by 'trackers'" in registry.warnings()[0]


@pytest.mark.parametrize(
    ("name", "message", "warnings"),
    [
        ("fails-at-once", "OSError: there is no server", 1),
        ("fails-in-domain", "OSError: the server is gone", 4),
        ("fails-at-the-end", "SystemExit: 3", 2),
    ],
)
def test_a_tracker_that_fails_is_a_warning(run, said, tmp_path, name, message, warnings):
    record = run(name, "lines")
    assert len(said.warnings) == warnings
    assert f"warning: tracker '{name}': {message}" in said.warnings
    assert len(lines(tmp_path / "runs/trackers/lines")) == 7, "the others are told all the same"
    assert message in (record.folder / "log.txt").read_text()
    assert fsdil_bench.find_records(tmp_path / "runs")
    assert record.warnings is None


def test_its_failure_does_not_look_like_that_of_the_run(run, tmp_path):
    record = run("fails-at-the-end")
    (record.folder / "record.json").unlink()
    [unfinished] = find_unfinished(tmp_path / "runs")
    assert unfinished.state == "incomplete"


def test_one_that_is_asked_for_wrongly_ends_the_run_before_it_begins(run, tmp_path):
    with pytest.raises(RequestError, match="MY_SERVER is not set"):
        run("lines", "refuses")
    assert lines(tmp_path / "runs/trackers/lines")[-1] == ["close", {"complete": False}]
    assert not list(tmp_path.rglob("domain-0"))


def test_ctrl_c_ends_the_run_and_a_resumed_one_is_told_all_again(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run("interrupted")
    run("interrupted")
    told = lines(tmp_path / "runs/trackers/interrupted")
    assert [what for what, _ in told] == [
        "begun", "domain", "domain", "close",
        "begun", *["domain"] * 4, "run", "close",
    ]  # fmt: skip
    resumed = [values["resumed"] for what, values in told[4:] if what == "domain"]
    assert resumed == [True, True, False, False]


def test_a_complete_run_is_told_from_its_record(run, tmp_path):
    record = run()
    run.heard.clear()
    run("lines")
    told = lines(tmp_path / "runs/trackers/lines")
    assert [values["row"] for what, values in told if what == "domain"] == record.matrix
    assert told[-2][1] == record.metrics
    assert not run.heard, "nothing is finished just now"


def test_asked_for_twice_is_once(run, tmp_path):
    run("lines", "lines")
    assert len(lines(tmp_path / "runs/trackers/lines")) == 7


def test_nothing_is_written_unless_it_is_asked_for(run, tmp_path):
    run()
    assert not (tmp_path / "runs/trackers").exists()


# --- what is wrong with a name ---


def test_an_unknown_name(run, tmp_path):
    with pytest.raises(RequestError) as error:
        run("mlfow")
    assert error.value.message == "unknown tracker 'mlfow'"
    assert "Did you mean 'mlflow'?" in error.value.remedy
    assert "fsdil-bench list trackers" in error.value.remedy
    assert not (tmp_path / "runs").exists()


def test_a_missing_library(call, monkeypatch):
    found = importlib.util.find_spec

    def without(name, *more):
        return None if name == "mlflow" else found(name, *more)

    monkeypatch.setattr("fsdil_bench.runs.tracking.find_spec", without)
    code, _, err = call(
        "run", "-m", "toy-means", "-s", "toy-1shot", "--plugin", TOY, "--track", "mlflow"
    )
    assert code == 2
    assert "tracker 'mlflow' needs mlflow, which is not installed" in err
    assert "pip install 'fsdil-bench[mlflow]'" in err
    assert "Traceback" not in err
    assert not Path("runs").exists()


def test_a_missing_library_of_a_third_party(run):
    with pytest.raises(RequestError) as error:
        run("lacks-a-library")
    assert error.value.remedy == "Install it: pip install no_such_library"


# --- sealed runs ---


def test_a_sealed_run_takes_no_tracker_of_a_third_party(run):
    with pytest.raises(RequestError) as error:
        run("lines", sealed=True)
    assert "unknown tracker 'lines'" in error.value.message
    assert "A sealed run imports no plugin that offers a tracker" in error.value.remedy


def test_a_sealed_run_calls_no_hook(run):
    run(sealed=True)
    assert not run.heard


def test_what_trackers_keep_is_what_a_sealed_method_should_not_read(run, tmp_path, monkeypatch):
    from fsdil_bench.runs.sealed.executor import SealedExecutor

    seen = []
    init = SealedExecutor.__init__

    def noting(self, *arguments):
        init(self, *arguments)
        seen.extend(self._secret)

    monkeypatch.setattr(SealedExecutor, "__init__", noting)
    run(sealed=True)
    assert tmp_path / "runs/trackers" in seen


def test_what_leads_to_trackers_is_not_in_its_environment(monkeypatch):
    from fsdil_bench.runs.sealed.server import environment

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:1")
    monkeypatch.setenv("WANDB_SERVICE", "a socket")
    monkeypatch.setenv("ELSE", "1")
    assert not [name for name in environment() if name.startswith(("MLFLOW", "WANDB"))]
    assert environment()["ELSE"] == "1"


# --- the hook ---


def test_the_hook_gets_the_facts(run):
    record = run(seed=3)
    domains = [domain for what, domain in run.heard if what == "domain"]
    assert [what for what, _ in run.heard] == [*["domain"] * 4, "run"]
    last = domains[-1]
    assert (last.run_id, last.method, last.scenario, last.seed) == (
        record.run_id, "toy-means", "toy-1shot", 3,
    )  # fmt: skip
    assert [domain.name for domain in domains] == record.domain_names == list(last.domains)
    assert last.metrics == record.metrics
    assert domains[0].metrics["FA*"] is None
    assert [list(row) for row in last.matrix] == record.matrix
    assert last.accuracies == dict(zip(record.domain_names, record.matrix[-1], strict=True))
    assert last.mean == sum(record.matrix[-1]) / 4
    assert last.spec == record.spec
    assert last.seconds == record.cost["per_domain"][-1]["seconds"]
    assert last.diagnostics == record.diagnostics["per_domain"][-1]
    assert not last.resumed
    with pytest.raises(FrozenInstanceError):
        last.index = 0


def test_the_facts_of_a_record_are_those_of_the_run(run):
    record = run(method="toy-router")
    told = [domain for what, domain in run.heard if what == "domain"]
    again = list(of_record(record))
    assert [vars(each) | {"resumed": False} for each in again] == [vars(each) for each in told]


def test_changing_the_facts_changes_no_record(run):
    record = run()
    domain = run.heard[0][1]
    domain.spec["method"] = domain.diagnostics["x"] = domain.seconds["learn"] = "changed"
    assert record.spec["method"] == "toy-means"
    assert "x" not in record.diagnostics["per_domain"][0]
    assert record.cost["per_domain"][0]["seconds"]["learn"] != "changed"


def test_after_an_interrupt_the_hook_is_called_again(run, monkeypatch):
    whole = Loop._run_domain

    def interrupted(self, t):
        if t == 3:
            raise KeyboardInterrupt
        return whole(self, t)

    monkeypatch.setattr(Loop, "_run_domain", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    monkeypatch.setattr(Loop, "_run_domain", whole)
    run.heard.clear()
    run()
    told = [(each.name, each.resumed) for what, each in run.heard if what == "domain"]
    assert told == [("d0", True), ("d1", True), ("d2", True), ("d3", False)]


def test_a_hook_that_fails_is_a_warning(tmp_path, said):
    file = tmp_path / "failing.py"
    file.write_text(
        "from fsdil_bench import hookimpl\n"
        "@hookimpl\ndef fsdil_domain_finished(domain): raise OSError('no network')\n"
    )
    registry = load_registry([TOY, file])
    record = fsdil_bench.run(
        "toy-means", "toy-1shot", out=tmp_path / "runs", registry=registry, progress=said
    )
    assert len(said.warnings) == 4
    assert "in fsdil_domain_finished: OSError: no network" in said.warnings[0]
    assert record.metrics["AA*"]


# --- sweeps ---


def test_a_sweep_tracks_all_its_runs(tmp_path):
    file = tmp_path / "some.toml"
    text = 'track = ["lines"]\n[[grid]]\nmethods = ["ncm"]\nscenarios = ["drawn-1shot"]\n'
    file.write_text(text)
    registry = load_registry([PLUGIN])
    [asked] = read_sweep(file, registry).runs
    assert asked.request.track == ("lines",)
    plain = asked.request.to_dict()
    assert plain["track"] == ["lines"]
    assert as_command(plain)[-2:] == ["--track", "lines"]
    [asked] = read_sweep(file, registry, Selection(), {"track": "mlflow,lines"}).runs
    assert asked.request.track == ("mlflow", "lines")
    file.write_text(text.replace("lines", "linse"))
    with pytest.raises(RequestError, match=r"some.toml, line 1: unknown tracker 'linse'"):
        read_sweep(file, registry)


def test_a_sweep_says_at_once_what_is_wrong(call):
    code, _, err = call("sweep", "-m", "ncm", "-s", "drawn-1shot", "--track", "mlfow", "--dry-run")
    assert code == 2
    assert "unknown tracker 'mlfow'" in err
