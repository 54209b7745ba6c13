"""What a board says of seeds, ties, unfinished runs and the paper."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import time

import pytest

from fsdil_bench import find_records
from fsdil_bench.analysis import paper
from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.analysis.unfinished import Unfinished, find_unfinished
from fsdil_bench.cli import cli
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.report.leaderboards.paper_lines import make_paper_lines


@pytest.fixture
def make(made, tmp_path):
    return lambda method, **options: made.make_record(tmp_path / "runs", method, **options)


def rows(records, unfinished=()):
    [sheet] = make_sheets(records, unfinished)
    return {row.label: row for row in sheet.rows}


# Ties


def test_rows_that_cannot_be_told_from_the_best_are_marked(make, tmp_path):
    levels = {"best": 0.9, "nearly": 0.899, "worse": 0.6}
    records = [make(m, seed=s, level=v) for m, v in levels.items() for s in range(3)]
    records.append(make("keeper", level=0.99, exemplar_free=False))
    found = rows(records)
    assert {label: row.scores["AA*"].place for label, row in found.items()} == {
        "best": "best", "nearly": "tied", "worse": "behind", "keeper": ""
    }  # fmt: skip
    write_leaderboards(records, tmp_path / "out")
    page = next((tmp_path / "out").glob("made-1shot*.md")).read_text().splitlines()
    line = {text.split("|")[1].strip(): text.split("|")[2].strip() for text in page if "|" in text}
    assert line["best"].startswith("**")
    assert line["nearly"].endswith("≈")
    assert "≈" not in line["worse"]
    assert "*" not in line["keeper \\*"]


def test_boards_say_what_they_could_have_seen(make, tmp_path):
    levels = {"best": 0.9, "nearly": 0.899, "worse": 0.6}
    records = [make(m, seed=s, level=v) for m, v in levels.items() for s in range(3)]
    [board] = make_sheets(records)[0].boards
    found = board.standing["AA*"]
    assert found.verdicts == {"best": "best", "nearly": "best", "worse": "worse"}
    write_leaderboards(records, tmp_path)
    page = next(tmp_path.glob("made-1shot*.md")).read_text()
    text = f"AA* 1-shot {found.smallest_difference:.2f}"
    assert "seen with a chance of 80 %" in page
    assert text in page
    assert text in next(tmp_path.glob("made_*.md")).read_text()
    [said] = json.loads((tmp_path / "leaderboards.json").read_text())["boards"]
    assert said["standing"]["AA*"] == found.verdicts
    assert said["smallest_difference"]["AA*"] == pytest.approx(found.smallest_difference)
    head, first = next(tmp_path.glob("made-1shot*.csv")).read_text().splitlines()[:2]
    line = dict(zip(head.split(","), first.split(","), strict=True))
    assert float(line["AA* smallest difference"]) == pytest.approx(found.smallest_difference)
    assert line["AA* verdict"] == "best"


def test_undecided_rows_have_a_mark_of_their_own(make, tmp_path, monkeypatch):
    def judged(values, clusters, level):
        return ["best", "undecided", "worse"], 1.5

    monkeypatch.setattr("fsdil_bench.analysis.statistics.against_best.judge", judged)
    records = [make(m, seed=s) for m in ("a", "b", "c") for s in range(3)]
    assert {label: row.scores["AA*"].verdict for label, row in rows(records).items()} == {
        "a": "best", "b": "undecided", "c": "worse"
    }  # fmt: skip
    write_leaderboards(records, tmp_path / "out")
    page = next((tmp_path / "out").glob("made-1shot*.md")).read_text()
    [line] = [text for text in page.splitlines() if text.startswith("| b ")]
    assert line.split("|")[2].strip().endswith("?")
    assert "? undecided" in page


def test_one_seed_is_said_to_be_one(make, tmp_path):
    records = [make("one"), *(make("three", seed=seed, level=0.5) for seed in range(3))]
    assert "one seed" in rows(records)["one"].scores["AA*"].covers
    write_leaderboards(records, tmp_path / "out")
    page = next((tmp_path / "out").glob("made-1shot*.md")).read_text()
    [line] = [text for text in page.splitlines() if text.startswith("| one ")]
    assert "°" in line.split("|")[2]
    assert "± " not in line.split("|")[2]
    assert "° one seed" in page


def test_without_predictions_there_is_no_interval(make):
    records = [make("bare", seed=seed) for seed in range(2)]
    for record in records:
        (record.folder / "predictions.npz").unlink()
    row = rows(records)["bare"]
    assert row.scores["AA*"].low is None
    assert row.scores["AA*"].mean is not None


def test_runs_of_one_seed_that_differ_otherwise_do_not_stop_the_board(make):
    first = make("twice")
    other = dataclasses.replace(first, run_id="another")
    found = rows([first, other, make("once")])
    assert found["twice"].scores["AA*"].place == ""
    assert found["once"].scores["AA*"].place == "best"


# Seeds and unfinished runs


def test_missing_seeds_are_named(make, tmp_path):
    records = [make("all", seed=seed) for seed in range(4)]
    records += [make("some", seed=seed, level=0.7) for seed in (1, 3)]
    found = rows(records)
    assert found["all"].missing_seeds == ()
    assert found["some"].missing_seeds == (0, 2)
    write_leaderboards(records, tmp_path / "out")
    assert "2 of 4 (without 0,2)" in next((tmp_path / "out").glob("made-1shot*.md")).read_text()


def unfinished(record, seed, failure="", **spec):
    return Unfinished(f"id{seed}", record.spec | {"seed": seed} | spec, failure)


def test_unfinished_runs_are_shown_as_such(make, tmp_path):
    records = [make("good", seed=seed) for seed in range(2)]
    begun = [
        unfinished(records[0], 2),
        unfinished(records[0], 0, "ValueError: <b>no|</b>", method="never"),
        unfinished(records[0], 5, scenario="made-8shot"),
    ]
    found = rows(records, begun)
    assert found["good"].missing_seeds == (2,)
    assert found["good"].unfinished_states() == "1 incomplete"
    assert found["never"].records == ()
    assert found["never"].unfinished_states() == "failed"
    write_leaderboards(records, tmp_path / "out", begun)
    page = next((tmp_path / "out").glob("made-1shot*.md")).read_text()
    assert "2 of 3 (without 2: 1 incomplete)" in page
    assert "ValueError: &lt;b&gt;no\\|&lt;/b&gt;" in page
    [line] = [text for text in page.splitlines() if text.startswith("| never ")][:1]
    assert [cell.strip() for cell in line.split("|")][2:6] == ["failed"] * 4
    index = (tmp_path / "out" / "README.md").read_text()
    assert "made-8shot" in index.split("## Scenarios without any result")[1]
    with next((tmp_path / "out").glob("made-1shot*.csv")).open(encoding="utf-8") as file:
        lines = {line["method"]: line for line in csv.DictReader(file)}
    assert (lines["good"]["incomplete"], lines["never"]["failed"]) == ("1", "1")
    assert lines["never"]["AA*"] == ""


def test_a_finished_twin_makes_an_unfinished_run_void(make):
    record = make("good")
    twin = Unfinished(record.run_id, record.spec)
    assert rows([record], [twin])["good"].unfinished == ()


def test_unfinished_runs_are_found_on_disk(toy_run, tmp_path, monkeypatch):
    from fsdil_bench.errors import FsdilError

    done = toy_run("toy-means")
    with pytest.raises(FsdilError):
        toy_run("toy-raisesinlearn")
    stopped = toy_run("toy-means", seed=1)
    (stopped.folder / "record.json").unlink()
    other = tmp_path / "runs" / "elsewhere"
    other.mkdir()
    (other / "spec.json").write_text(json.dumps({"openapi": 3}))
    found = {(run.spec["method"], run.spec["seed"]): run for run in find_unfinished(tmp_path)}
    assert {key: run.state for key, run in found.items()} == {
        ("toy-raisesinlearn", 0): "failed", ("toy-means", 1): "incomplete"
    }  # fmt: skip
    assert "learn says the test" in found["toy-raisesinlearn", 0].failure
    assert "\n" not in found["toy-raisesinlearn", 0].failure
    assert found["toy-means", 1].run_id == stopped.run_id != done.run_id


@pytest.mark.parametrize(
    ("log", "failed"),
    [
        ("domain 0 (a): [1.0]\n", False),
        ("Traceback (most recent call last):\n  File x\nValueError: a\nmore\n", True),
        ("Traceback (most recent call last):\n  File x\nKeyboardInterrupt\n", False),
        ("Traceback (most recent call last):\n  File x\nValueError: a\ndomain 1 (b): [1]\n", False),
    ],
)
def test_a_log_tells_a_failure_from_a_stop(make, log, failed):
    record = make("some")
    (record.folder / "record.json").unlink()
    (record.folder / "spec.json").write_text(json.dumps(record.spec))
    (record.folder / "log.txt").write_text(log)
    [run] = find_unfinished(record.folder)
    assert run.failure == ("ValueError: a" if failed else "")


def test_the_command_shows_them(make, tmp_path, capsys):
    make("good")
    (make("good", seed=1).folder / "record.json").rename(tmp_path / "gone.json")
    [folder] = [p.parent for p in (tmp_path / "runs").rglob("predictions.npz")
                if not (p.parent / "record.json").exists()]  # fmt: skip
    spec = json.loads((tmp_path / "gone.json").read_text())["spec"]
    (folder / "spec.json").write_text(json.dumps(spec))
    arguments = ["leaderboard", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--json"]
    cli.main(arguments, standalone_mode=False)
    files = json.loads(capsys.readouterr().out)
    assert str(tmp_path / "out" / "index.html") in files
    index = (tmp_path / "out" / "README.md").read_text()
    assert "incomplete" in index


# Boards side by side


def test_a_sheet_holds_all_shots_and_nothing_else(make):
    records = [make("a", scenario=f"made-{k}shot") for k in (1, 2, 10)]
    records += [make("a", scenario="made-1shot@other"), make("a", backbone="other-clip")]
    records += [make("a", domains=3)]
    sheets = make_sheets(records)
    assert sorted([board.shots for board in sheet.boards] for sheet in sheets) == [
        [1], [1], [1], [1, 2, 10]
    ]  # fmt: skip
    assert len({sheet.name for sheet in sheets}) == 4


def test_a_method_has_one_label_on_all_boards_of_a_sheet(make):
    records = [make("a", config={"lr": 1}), make("a", config={"lr": 2}, scenario="made-2shot")]
    [sheet] = make_sheets(records)
    labels = [row.label for row in sheet.rows]
    assert labels == ["a [lr=1]", "a [lr=2]"]


def test_rows_that_options_do_not_tell_apart_get_a_hash(make):
    first = make("a", config={"long": "x" * 50})
    other = make("a", config={"long": "y" * 50})
    newer = dataclasses.replace(first, run_id="n", method=first.method | {"code": {"method": "n"}})
    for records in ([first, other], [first, newer]):
        labels = set(rows(records))
        assert len(labels) == 2
        assert all(re.fullmatch(r"a \[[0-9a-f]{4}\]", label) for label in labels)


# The paper


def paper_record(made, out, seed, **change):
    """A record that claims to be in the paper's setting."""
    from fsdil_bench.analysis.paper.setting import SETTINGS

    setting = SETTINGS["core50"]
    record = made.make_record(
        out, "cvlc", "core50-1shot", seed, domains=len(setting.order), backbone=paper_backbone()
    )
    spec = record.spec | {"order": list(setting.order)} | change
    scenario = record.scenario | {
        "classes": [str(i) for i in range(setting.classes)],
        "transform": {"preset": setting.transform},
        "domains": [
            domain | {"name": name}
            for domain, name in zip(record.scenario["domains"], setting.order, strict=True)
        ],
    }
    return dataclasses.replace(record, spec=spec, scenario=scenario)


def paper_backbone():
    from fsdil_bench.analysis.paper.setting import BACKBONE

    return BACKBONE


def verdicts(records):
    number = ("core50", 1, "cvlc", "AA*")
    return [
        each
        for each in make_paper_lines(make_sheets(records))
        if (each.dataset, each.shots, each.method, each.metric) == number
    ]


def test_reported_numbers_get_a_verdict(made, tmp_path):
    reported = paper.reported("core50", 1, "cvlc", "AA*")
    records = [paper_record(made, tmp_path, seed) for seed in range(3)]
    [found] = verdicts(records)
    assert found.verdict.case == "not reproduced"  # the made numbers are far lower
    assert found.verdict.difference == pytest.approx(found.measured - reported.mean)
    close = [
        dataclasses.replace(r, metrics=r.metrics | {"AA*": reported.mean + 0.01}) for r in records
    ]
    assert verdicts(close)[0].verdict.case == "reproduced"
    [bad] = verdicts([paper_record(made, tmp_path, s, precision="bf16") for s in range(3)])
    assert bad.verdict.case == "not comparable"
    assert "bf16" in bad.verdict.reason
    typed = {"command": "fsdil-bench run -m cvlc -s core50-1shot --set mode=code --set lr=9"}
    config = {"config": {"mode": "code", "lr": 9}}
    changed = [dataclasses.replace(r, provenance=typed, spec=r.spec | config) for r in records]
    [other] = verdicts(changed)
    assert str(other.verdict) == "not comparable: option lr=9"
    [one] = verdicts(records[:1])
    assert one.verdict.case == "not comparable"
    [absent] = verdicts([made.make_record(tmp_path, "cvlc")])
    assert absent.verdict.case == "not run"
    assert absent.measured is None


def test_verdicts_are_on_the_pages(made, tmp_path):
    write_leaderboards([paper_record(made, tmp_path, seed) for seed in range(3)], tmp_path / "out")
    sheet = next((tmp_path / "out").glob("core50_*.md")).read_text()
    assert "not reproduced" in sheet.split("## Against the paper")[1]
    assert "## Measured here" in (tmp_path / "out" / "paper.md").read_text()
    index = (tmp_path / "out" / "README.md").read_text()
    assert "2 not reproduced" in index
    write_leaderboards([made.make_record(tmp_path, "cvlc")], tmp_path / "other")
    sheet = next((tmp_path / "other").glob("made_*.md")).read_text()
    assert "Not comparable" in sheet.split("## Against the paper")[1]


# Many records


@pytest.mark.slow
def test_two_thousand_records(made, tmp_path):
    """A page that a browser opens at once; its build must not read each record many times."""
    made.make_records(tmp_path / "runs", 2000, domains=6, images=480)
    records = find_records(tmp_path / "runs")
    assert len(records) == 2000
    write_leaderboards(records[:20], tmp_path / "warm")  # imports
    began = time.process_time()
    find_records(tmp_path / "runs")
    read = time.process_time() - began
    began = time.process_time()
    write_leaderboards(records, tmp_path / "out")
    assert time.process_time() - began < 50 * read
    assert (tmp_path / "out" / "index.html").stat().st_size < 5 * 2**20
