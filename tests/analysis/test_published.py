"""A run says where it stands on the board that the package carries, and is silent without one."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TOY

from fsdil_bench import find_records
from fsdil_bench.analysis import published
from fsdil_bench.analysis.grouping import board_key
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.report.leaderboards.publish import published_json
from fsdil_bench.report.where_it_stands import where_it_stands

ROOT = Path(__file__).parents[2]
RUN = ("run", "--plugin", TOY, "--method", "toy-means", "--scenario", "toy-1shot")


def row(method, mean, *, label="", exemplar_free=True):
    return {
        "method": method, "label": label or method, "mean": mean, "seeds": 3, "sealed": 0,
        "exemplar_free": exemplar_free,
    }  # fmt: skip


ROWS = [
    row("zero-shot", 41.24),
    row("cvlc", 73.44, label="cvlc [mode=paper]"),
    row("linear-probe", 63.0),
    row("joint", 80.1, exemplar_free=False),
    row("replay", 79.0, exemplar_free=False),
]


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Let the package carry one board."""
    monkeypatch.setattr(published, "FILE", tmp_path / "published.json")

    def write(name, rows=ROWS):
        published.FILE.write_text(json.dumps({"boards": {name: rows}}), encoding="utf-8")

    return write


@pytest.fixture
def record(toy_run, publish):
    record = toy_run(backbone="toy-clip")
    publish(board_key(record).file_name)
    return record


def said(record, these="this run"):
    return (
        "on the published board (AA*): zero-shot 41.2, linear-probe 63.0,"
        f" toy-means {record.metrics['AA*']:.1f} ({these}), best 73.4 (cvlc [mode=paper]),"
        " joint 80.1"
    )


def test_a_run_says_where_it_stands(record, call):
    code, out, _ = call(*RUN)
    assert code == 0
    assert said(record) in out.splitlines()
    code, out, _ = call("show", record.folder)
    assert code == 0
    assert said(record) in out.splitlines()


def test_several_seeds_stand_with_their_mean(record):
    better = dataclasses.replace(record, metrics={"AA*": record.metrics["AA*"] - 2})
    middle = dataclasses.replace(record, metrics={"AA*": record.metrics["AA*"] - 1})
    assert where_it_stands([record, better]) == said(middle, "these 2 runs")


def test_quiet_runs_and_json_are_as_before(record, call):
    for option in ("--quiet", "--json"):
        _, out, _ = call(*RUN, option)
        assert "published board" not in out
    _, out, _ = call("show", record.folder, "--json")
    assert "published board" not in out


def test_what_is_not_on_the_board_is_not_said(record, publish):
    publish(board_key(record).file_name, [row("other", 50.0)])
    found = f"toy-means {record.metrics['AA*']:.1f} (this run), best 50.0 (other)"
    assert where_it_stands([record]) == f"on the published board (AA*): {found}"


@pytest.mark.parametrize(
    "part", ["weights", "scenario", "precision", "order", "tests", "two at once"]
)
def test_where_no_board_fits_nothing_is_said(record, part):
    spec, scenario = record.spec, record.scenario
    cut = [each | {"test_sha256": "0" * 64} for each in scenario["domains"]]
    other = {
        "weights": {"method": record.method | {"weights": "others"}},
        "scenario": {"spec": spec | {"scenario": "toy@variant-1shot"}},
        "precision": {"spec": spec | {"precision": "bf16"}},
        "order": {"spec": spec | {"order": spec["order"][::-1]}},
        "tests": {"scenario": scenario | {"domains": cut}},
        "two at once": {"spec": spec | {"scenario": "toy-2shot"}},
    }[part]
    different = dataclasses.replace(record, **other)
    assert where_it_stands([record, different] if part == "two at once" else [different]) == ""
    assert where_it_stands([record])


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"boards": 1}', "one field", "many fields", "no number", "\xff"]
)
def test_a_broken_file_costs_the_line_alone(record, text, call):
    name = board_key(record).file_name
    rows = {
        "one field": [{"method": "a"}],
        "many fields": [row("a", 1.0) | {"b": 1}],
        "no number": [row("a", "high")],
    }
    if text is None:
        published.FILE.unlink()
    elif text in rows:
        published.FILE.write_text(json.dumps({"boards": {name: rows[text]}}))
    else:
        published.FILE.write_text(text, encoding="latin-1")
    code, out, err = call("show", record.folder)
    assert (code, err) == (0, "")
    assert "AA*" in out
    assert "published board" not in out


def test_rows_that_prove_nothing_are_not_published(made, tmp_path):
    made.make_record(tmp_path / "runs", "sound", level=0.5)
    made.make_record(tmp_path / "runs", "unsealed", level=0.9)
    records = find_records(tmp_path / "runs")
    records[1].method["plugin"] = {"name": "somebody", "version": "1"}
    write_leaderboards(records, tmp_path)
    carried = json.loads(published_json(json.loads((tmp_path / "leaderboards.json").read_text())))
    [rows] = carried["boards"].values()
    assert [each["method"] for each in rows] == ["sound"]
    assert carried["boards"].keys() == {board_key(records[0]).file_name}


def test_the_file_is_what_the_boards_say():
    boards = json.loads((ROOT / "leaderboards/leaderboards.json").read_text(encoding="utf-8"))
    text = published.FILE.read_text(encoding="utf-8")
    assert text == published_json(boards), "run: make boards"
    assert len(text) < 100_000
    means = {
        (board["name"], row["label"]): row["scores"]["AA*"]["mean"]
        for board in boards["boards"]
        for row in board["rows"]
    }
    carried = {
        (name, each["label"]): each["mean"]
        for name, rows in json.loads(text)["boards"].items()
        for each in rows
    }
    assert carried == pytest.approx(means, abs=0.0051)


def test_published_records_find_their_board():
    [record] = find_records(next((ROOT / "leaderboards/records").glob("drawn-1shot/ranpac/seed0*")))
    assert "ranpac" in where_it_stands([record])


def test_neither_lists_nor_methods_import_it():
    """A method must not find the numbers of others in its process."""
    code = (
        "import sys, fsdil_bench.runs.sealed.child, fsdil_bench.runs.runner, fsdil_bench.cli as c\n"
        "c.cli.main(['list', 'methods'], standalone_mode=False)\n"
        "print('fsdil_bench.analysis.published' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_make_boards_writes_and_checks_it():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\nboards: $(VENV)")[2].partition("\n\n")[0]
    assert "-m fsdil_bench.report.leaderboards.publish leaderboards/leaderboards.json" in recipe
    assert "boards: BOARDS := leaderboards fsdil_bench/analysis/published.json" in makefile
