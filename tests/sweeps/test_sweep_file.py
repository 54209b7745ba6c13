"""What a sweep file asks for, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench.analysis.paper.setting import PRECISIONS, SETTINGS
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.sweeps.request import Selection, threads_per_run
from fsdil_bench.sweeps.sweep_file import read_sweep
from fsdil_bench.sweeps.sweep_text import line_of
from fsdil_bench.sweeps.values import number_list, seconds

ROOT = Path(fsdil_bench.__file__).parent.parent


@pytest.fixture(scope="module")
def registry():
    return load_registry()


@pytest.fixture
def read(tmp_path, registry):
    def call(text, selection=None, **settings):
        path = tmp_path / "some.toml"
        path.write_text(text)
        return read_sweep(path, registry, selection or Selection(), settings)

    return call


def cells(sweep):
    requests = [run.request for run in sweep.runs]
    return [(each.method, str(each.scenario), each.seed) for each in requests]


GRID = """
[[grid]]
methods = ["ncm", "slda"]
scenarios = ["drawn"]
shots = [1, 4]
seeds = "0-1"
"""


def test_a_grid_is_every_combination(read):
    sweep = read(GRID)
    assert len(cells(sweep)) == 8
    assert cells(sweep)[0] == ("ncm", "drawn-1shot", 0)
    assert ("slda", "drawn-4shot", 1) in cells(sweep)
    assert sweep.settings.name == "some"


def test_grids_add_up_and_cells_count_once(read):
    sweep = read(GRID + '[[grid]]\nmethods = ["ncm", "ranpac"]\nscenarios = ["drawn-1shot"]\n')
    assert len(cells(sweep)) == 9
    assert ("ranpac", "drawn-1shot", 0) in cells(sweep)


def test_lists_at_the_top_are_one_grid(read):
    sweep = read('methods = "ncm"\nscenarios = ["drawn-1shot"]\nseeds = [3]')
    assert cells(sweep) == [("ncm", "drawn-1shot", 3)]


def test_patterns_take_every_method_that_matches(read, registry):
    sweep = read('methods = ["cvlc*"]\nscenarios = ["drawn-1shot"]')
    expected = [name for name in registry.methods if name.startswith("cvlc")]
    assert [method for method, _, _ in cells(sweep)] == expected
    assert len(expected) > 3


def test_exclude_and_include(read):
    rules = 'exclude = [{ method = "s*", shots = 4 }, { seed = 1, dataset = "drawn", shots = [1] }]'
    sweep = read(
        GRID + rules + '\n[[include]]\nmethod = "slda"\nscenario = "drawn-4shot"\nseed = 1\n'
    )
    assert sorted(cells(sweep)) == [
        ("ncm", "drawn-1shot", 0),
        ("ncm", "drawn-4shot", 0),
        ("ncm", "drawn-4shot", 1),
        ("slda", "drawn-1shot", 0),
        ("slda", "drawn-4shot", 1),
    ]


def test_options_of_method_grid_and_command_line_are_layered(read):
    text = GRID + 'base_limit = 5\nconfig = { mode = "balanced" }\n'
    text += '[method.ncm]\nbase_limit = 3\nbase = "sketch"\nconfig = { mode = "running" }\n'
    sweep = read(text, Selection(methods=("ncm",), config=("text_mix=0.5", "slda.shrinkage=0.1")))
    request = sweep.runs[0].request
    assert request.base_limit == 5
    assert request.base == "sketch"
    assert request.config == {"mode": "balanced", "text_mix": "0.5"}


def test_options_at_the_top_are_for_all_grids_and_yield_to_all_else(read):
    text = 'base_limit = 7\nbase = "clipart"\n' + GRID
    assert {run.request.base_limit for run in read(text).runs} == {7}
    text += 'base = "real"\n[method.slda]\nbase_limit = 3\nbase = "sketch"\n'
    found = {(r.request.method, r.request.base_limit, r.request.base) for r in read(text).runs}
    assert found == {("ncm", 7, "real"), ("slda", 3, "real")}


def test_resources_of_all_and_of_one_method(read):
    text = "threads = 2\ntime_limit = '1h'\n" + GRID
    text += "[resources]\nmemory_gb = 2\n[resources.slda]\ncpus = 4\ngpus = 1\ntime_limit = 90\n"
    found = {run.request.method: run.resources for run in read(text).runs}
    assert (found["ncm"].cpus, found["ncm"].memory_gb, found["ncm"].time_limit) == (2, 2, 3600)
    assert (found["slda"].cpus, found["slda"].gpus, found["slda"].time_limit) == (4, 1, 90)


def test_flags_choose_among_the_cells_of_a_file(read):
    chosen = Selection(scenarios=("drawn",), shots=(4,), seeds=(1,))
    assert cells(read(GRID, chosen)) == [("ncm", "drawn-4shot", 1), ("slda", "drawn-4shot", 1)]
    assert read(GRID, retries=5, out="elsewhere").settings.retries == 5


def test_flags_alone_are_a_grid(registry):
    selection = Selection(("ncm",), ("core50@blocks",), (1, 2), (0,))
    sweep = read_sweep(None, registry, selection)
    assert [scenario for _, scenario, _ in cells(sweep)] == [
        "core50-1shot@blocks",
        "core50-2shot@blocks",
    ]


def test_planned_methods_are_reported_until_they_are_there(read):
    text = 'planned = ["soon", "ncm"]\nmethods = ["soon", "ncm"]\nscenarios = ["drawn-1shot"]'
    sweep = read(text)
    assert cells(sweep) == [("ncm", "drawn-1shot", 0)]
    assert [run.request.method for run in sweep.planned] == ["soon"]


def test_threads_are_the_cores_divided_by_the_jobs(read, monkeypatch):
    monkeypatch.setattr("fsdil_bench.sweeps.request.available", lambda: 8)
    assert threads_per_run(read(GRID, jobs=2).settings) == 4
    assert threads_per_run(read(GRID, jobs=16).settings) == 1
    assert threads_per_run(read(GRID, jobs=2, threads=3).settings) == 3
    assert threads_per_run(read("launcher = 'cluster'\n" + GRID).settings) == 1


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("jobs = 2\nretry = 2\n" + GRID, 2, ["'retry'", "'retries'"]),
        ("jobs = 'two'\n" + GRID, 1, ["jobs = 'two'", "whole number"]),
        ("jobs = 0\n" + GRID, 1, ["out of range"]),
        ("jobs = 1\nbase_limit = 'x'\n" + GRID, 2, ["base_limit", "whole number"]),
        ("time_limit = 'soon'\n" + GRID, 1, ["time_limit", "1h30m"]),
        (GRID.replace("ncm", "nmc"), 3, ["'nmc'", "'ncm'"]),
        (GRID.replace("drawn", "drown"), 4, ["'drown'", "'drawn'"]),
        (GRID.replace('["drawn"]', '["drawn-1shot"]'), 4, ["names its shots"]),
        (GRID.replace("shots = [1, 4]", ""), 4, ["'drawn' is not a scenario"]),
        (GRID.replace("[1, 4]", "['a']"), 4, ["shots", "not a list of numbers"]),
        (GRID.replace('"0-1"', '"x"'), 6, ["seeds = 'x'", "0-2"]),
        (GRID.replace("seeds", "seed"), 6, ["'seed'", "'seeds'"]),
        (GRID.replace('["ncm", "slda"]', "3"), 3, ["methods = 3"]),
        (GRID + "base_limit = 'x'", 7, ["base_limit", "whole number"]),
        (GRID + "config = 3", 7, ["config = 3", "{ key = value }"]),
        (GRID + "exclude = [{ metod = 'ncm' }]", 7, ["'metod'", "method"]),
        (GRID + GRID.replace("ncm", "nmc"), 9, ["'nmc'"]),
        (GRID + "[method.nmc]\nbase = 'x'", 7, ["'nmc'", "'ncm'"]),
        (GRID + "[method.ncm]\nmode = 'x'", 8, ["'mode'", "config = { mode"]),
        (GRID + "[resources.ncm]\nmemory = 3", 7, ["'memory'", "memory_gb"]),
        ("methods = ncm", None, ["not valid TOML", "line 1"]),
        ("", None, ["no run is asked for", "[[grid]]"]),
    ],
)
def test_a_mistake_is_said_with_its_place_and_remedy(read, tmp_path, text, line, expected):
    with pytest.raises(RequestError) as caught:
        read(text)
    said = str(caught.value)
    assert said.startswith(str(tmp_path / "some.toml"))
    if line:
        assert f"line {line}:" in said
    for part in expected:
        assert part in said


def test_lines_are_found_in_the_right_table():
    text = "a = 1\n[[grid]]\na = 2\n[[grid]]\nb = 3\na = 4\n[x.y]\na = 5\n"
    assert line_of(text, "a") == 1
    assert line_of(text, "a", "grid", 0) == 3
    assert line_of(text, "a", "grid", 1) == 6
    assert line_of(text, "a", "x", "y") == 8
    assert line_of(text, "", "x", "y") == 7


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90), (90, 90), ("1h30m", 5400), ("2d", 172800), ("1.5m", 90)]
)
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "h", "-3", 0, "1x"])
def test_bad_durations(text):
    with pytest.raises(RequestError):
        seconds(text)


def test_number_lists():
    assert number_list("seeds", "0-2,7,1") == [0, 1, 2, 7]
    assert number_list("seeds", [4]) == [4]
    assert number_list("seeds", 4) == [4]
    with pytest.raises(RequestError):
        number_list("seeds", [True])
    with pytest.raises(RequestError):
        number_list("seeds", "0,x")


def test_the_shipped_sweeps_can_be_read(registry):
    embedded = read_sweep(ROOT / "sweeps" / "embedded.toml", registry)
    asked = {(str(run.request.scenario), run.request.method) for run in embedded.runs}
    for world in ("drawn", "shelf", "forged"):
        for shots in (1, 4):
            assert {m for s, m in asked if s == f"{world}-{shots}shot"} == set(registry.methods)
    assert all(run.request.sealed for run in embedded.runs)
    assert not embedded.planned
    paper = read_sweep(ROOT / "sweeps" / "paper.toml", registry)
    requests = [run.request for run in [*paper.runs, *paper.planned]]
    asked = {(request.method, str(request.scenario)) for request in requests}
    for dataset in ("core50", "cddb-hard", "domainnet"):
        for shots in (1, 2, 4, 8):
            assert ("cvlc", f"{dataset}-{shots}shot") in asked
            assert ("s-prompts", f"{dataset}-{shots}shot") in asked
    assert ("fshil", "domainnet-5shot") in asked
    assert ("cvlc-lora", "core50-4shot") in asked
    assert ("cvlc-lora", "domainnet-4shot") not in asked
    assert {"l2p", "dytox", "asp"} <= {run.request.method for run in paper.runs}
    # What only its authors can run, until someone brings a plugin.
    assert {run.request.method for run in paper.planned} == {"pgo-ben", "fshil"}
    for request in requests:
        dataset = request.scenario.dataset
        assert request.precision == PRECISIONS[0], request
        # The other data sets come in the paper's order by themselves.
        assert request.order == (SETTINGS[dataset].order if dataset == "core50" else ()), request
