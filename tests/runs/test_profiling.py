"""`--profile`: traces of a few batches of every phase, and a table of phases."""

from __future__ import annotations

import gzip
import json

import pytest
import torch

from fsdil_bench import RequestError
from fsdil_bench.progress import Progress
from fsdil_bench.runs.profiling import ProfiledProgress, write_phases


def work(progress, name, batches):
    with progress.phase(name, batches):
        for _ in range(batches):
            with torch.profiler.record_function("one batch"):
                torch.ones(4, 4) @ torch.ones(4, 4)
            progress.advance()


def events(path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_a_few_batches_of_a_phase_are_recorded_once(tmp_path):
    progress = ProfiledProgress(Progress(), tmp_path, torch.device("cpu"))
    work(progress, "domain 1: training", 12)
    work(progress, "domain 1: training", 12)
    work(progress, "domain 2: training", 4)
    work(progress, "short", 1)
    traces = sorted((tmp_path / "profile").glob("*.json.gz"))
    assert [path.name for path in traces] == [
        "domain-1-training.trace.json.gz",
        "domain-2-training.trace.json.gz",
    ]
    named = [[e for e in events(path) if e.get("name") == "one batch"] for path in traces]
    recorded = [len([e for e in found if e.get("cat") == "user_annotation"]) for found in named]
    assert recorded == [6, 3]  # all but the first, at most six
    assert "aten::mm" in (tmp_path / "profile" / "domain-1-training.txt").read_text()


def test_phases_inside_of_phases_belong_to_the_outer_one(tmp_path):
    progress = ProfiledProgress(Progress(), tmp_path, torch.device("cpu"))
    with progress.phase("outer", 3):
        progress.advance()
        work(progress, "inner", 3)
    assert [path.name for path in (tmp_path / "profile").glob("*.gz")] == ["outer.trace.json.gz"]


def test_the_table_has_every_phase_of_every_domain(tmp_path):
    costs = [
        {"seconds": {"learn": 2.0, "predict": 0.5}, "images": {"learn": 10}},
        {"seconds": {"learn": 0.0}, "images": {"learn": 1}},
    ]
    text = write_phases(tmp_path, ["a", "b", "not learned yet"], costs).read_text()
    assert text.splitlines()[2:] == [
        "| a | learn | 2.00 | 10 | 5.0 |",
        "| a | predict | 0.50 |  |  |",
        "| b | learn | 0.00 | 1 |  |",
    ]


def test_a_profiled_run_has_the_same_result(toy_run, tmp_path):
    plain = toy_run("toy-means")
    profiled = toy_run("toy-means", out=tmp_path / "profiled", profile=True)
    assert profiled.run_id == plain.run_id
    assert profiled.predictions_sha256 == plain.predictions_sha256
    assert (profiled.folder / "profile" / "phases.md").is_file()


def test_a_sealed_run_is_not_profiled(toy_run):
    with pytest.raises(RequestError, match="sealed run cannot be profiled"):
        toy_run(sealed=True, profile=True)
