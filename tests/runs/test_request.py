"""One request for all who ask for runs: nothing in it may be forgotten on any way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click
import pytest

import fsdil_bench
from fsdil_bench import RequestError
from fsdil_bench.cli.run import run as run_command
from fsdil_bench.cli.tune import tune as tune_command
from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.data.stream_request import StreamRequest
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.records.identity import RunSpec
from fsdil_bench.runs import runner
from fsdil_bench.runs.job import identify
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.sweeps import grid
from fsdil_bench.sweeps.sweep_file import read_sweep
from fsdil_bench.sweeps.worker import as_command

TOY = Path(__file__).parent.parent / "toy_plugin.py"
FIELDS = {field.name for field in dataclasses.fields(RunRequest)}
HOW = {each.name for each in dataclasses.fields(RunRequest) if each.metadata.get("how")}

#: A value for every field that is not its default.
GIVEN = {
    "method": "ncm", "scenario": "drawn-2shot", "seed": 3, "backbone": "tiny-clip",
    "config": {"mode": "balanced"}, "data": "/data", "order": ["sketch", "real"], "base": "sketch",
    "base_limit": 5, "names": "/names.json", "synonyms": "/synonyms.json",
    "scenario_options": {"key": "value"}, "transform": "clip", "workers": 0, "device": "cpu",
    "precision": "fp32", "batch_size": 7, "checkpointing": "on", "compile": True,
    "deterministic": True, "keep_checkpoints": True, "reuse_base": True, "profile": True,
    "sealed": True, "track": ["tensorboard", "mlflow"],
}  # fmt: skip


def test_a_new_field_needs_a_value_here():
    assert set(GIVEN) == FIELDS


def test_every_field_survives_json():
    request = RunRequest.of(**GIVEN)
    plain = json.loads(json.dumps(request.to_dict()))
    assert plain == GIVEN
    assert RunRequest.of(**plain) == request
    assert (request.scenario, request.order) == (ScenarioId("drawn", 2), ("sketch", "real"))


def test_defaults_are_left_out():
    request = RunRequest.of(method="m", scenario="s-1shot", data=None, config={})
    assert request.to_dict() == {"method": "m", "scenario": "s-1shot"}
    assert str(request) == "m on s-1shot, seed 0"


@pytest.fixture
def asked(monkeypatch):
    """Requests that commands would have carried out."""
    requests = []

    class StoppedError(Exception):
        pass

    def prepare(request, registry):
        requests.append(request)
        raise StoppedError

    monkeypatch.setattr("fsdil_bench.runs.job.prepare", prepare)
    monkeypatch.setattr(runner, "prepare", prepare)

    def ask(call):
        with pytest.raises(StoppedError):
            call()
        return requests[-1]

    return ask


def test_python_passes_every_field_on(asked):
    given = GIVEN | {"data": Path("/data")}
    assert asked(lambda: fsdil_bench.run(**given)) == RunRequest.of(**GIVEN)


def test_the_command_line_passes_every_field_on(asked):
    words = as_command(GIVEN)[2:]
    call = run_command.main
    assert asked(lambda: call(words, standalone_mode=False)) == RunRequest.of(**GIVEN)


@pytest.mark.parametrize("command", [run_command, tune_command])
def test_every_field_is_an_option_with_help(command):
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    tables = {"config": "settings", "scenario_options": "scenario_settings"}
    for name in FIELDS - {"method", "scenario", "seed"}:
        assert options[tables.get(name, name)].help


def test_a_sweep_file_passes_every_field_on(tmp_path):
    lists = {"method": "methods", "scenario": "scenarios", "seed": "seeds"}
    of_sweep = ("reuse_base", "track")
    lines = [*(f"{name} = {json.dumps(GIVEN[name])}" for name in of_sweep), "[[grid]]"]
    for name, value in GIVEN.items():
        if isinstance(value, dict):
            text = "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + "}"
        elif name not in of_sweep:
            text = json.dumps([value] if name in lists else value)
        else:
            continue
        lines.append(f"{lists.get(name, name)} = {text}")
    (tmp_path / "sweep.toml").write_text("\n".join(lines))
    (run,) = read_sweep(tmp_path / "sweep.toml", load_registry()).runs
    assert run.request == RunRequest.of(**GIVEN)
    assert {*grid.OPTIONS, *grid.TABLES} == FIELDS - {*lists, *of_sweep}


def test_a_request_is_what_it_is_and_how_it_is_carried_out(toy_registry, tmp_path):
    """Every field decides the id, or is marked as saying how the run is carried out."""
    (tmp_path / "names.json").write_text("{}")
    plain = {"method": "toy-means", "scenario": "toy-1shot", "precision": "fp32"}
    others = {
        "method": "toy-router", "scenario": "toy-2shot", "seed": 1, "order": "d1,d0", "base": "d2",
        "base_limit": 2, "transform": "core50", "precision": "bf16", "workers": 0, "device": "cpu",
        "batch_size": 3, "checkpointing": "off", "compile": True, "deterministic": True,
        "keep_checkpoints": True, "reuse_base": True, "profile": True, "sealed": True,
        "track": "mlflow",
    }  # fmt: skip
    # The toy has no other backbones, options, files and names.
    assert set(others) == FIELDS - {
        "backbone", "config", "data", "names", "synonyms", "scenario_options"
    }  # fmt: skip
    ids = {
        name: identify(RunRequest.of(**plain | {name: value}), toy_registry).run_id
        for name, value in others.items()
    }
    usual = identify(RunRequest.of(**plain), toy_registry).run_id
    assert {name for name, run_id in ids.items() if run_id == usual} == HOW


def test_a_spec_can_be_asked_for_again():
    assert {field.name for field in dataclasses.fields(RunSpec)} <= FIELDS - HOW


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sede": 1}, "unknown argument of RunRequest: 'sede'"),
        ({"scenario": "drawn"}, "'drawn' is not a scenario"),
        ({"seed": "x"}, "seed = 'x' does not fit"),
        ({"batch_size": 0}, "batch_size = 0 is out of range"),
        ({"config": 3}, "config = 3 does not fit"),
    ],
)
def test_wrong_values_are_named(given, said):
    with pytest.raises(RequestError) as caught:
        RunRequest.of(**{"method": "m", "scenario": "s-1shot"} | given)
    assert said in caught.value.message
    assert caught.value.remedy


def test_paths_become_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    request = StreamRequest.of(scenario="s-1shot", data="some", names=Path("n.json"))
    request = request.with_absolute_paths()
    assert (request.data, request.names) == (str(tmp_path / "some"), str(tmp_path / "n.json"))
    assert request.synonyms is None


@pytest.mark.parametrize("sealed", [True, "true"])
def test_a_class_cannot_be_sealed(tmp_path, sealed):
    class Idea(fsdil_bench.Method):
        """Never built."""

    with pytest.raises(RequestError, match="by its name"):
        fsdil_bench.run(Idea, "drawn-1shot", sealed=sealed, out=tmp_path)
    assert not list(tmp_path.iterdir())
