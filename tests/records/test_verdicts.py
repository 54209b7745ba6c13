"""verdict.json: who ran a record again; and what boards say of evidence."""

from __future__ import annotations

import dataclasses
import json

import pytest

from fsdil_bench import Record
from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.records.verdict_file import make_verdict, read_verdict, save_verdict
from fsdil_bench.records.verdict_file import verdict_problem as problem
from fsdil_bench.report.leaderboards import write_leaderboards

PLUGIN = {"name": "theirs", "version": "1"}


@pytest.fixture
def make(made, tmp_path):
    """Make a record; `plugin` makes it one of a third-party method."""

    def one(method, plugin=False, **options):
        record = made.make_record(tmp_path / "runs", method, **options)
        if plugin:
            record = dataclasses.replace(record, method=record.method | {"plugin": PLUGIN})
            (record.folder / "record.json").write_text(record.to_json())
        return Record.load(record.folder)

    return one


def rows(records):
    [sheet] = make_sheets(records)
    return {row.label: row for row in sheet.rows}


def page_of(records, out):
    write_leaderboards(records, out)
    return next(out.glob("made-1shot*.md")).read_text()


def test_a_verdict_is_about_one_record(make):
    record, other = make("one"), make("other")
    verdict = make_verdict(record, "identical", who="  A\nB ", sealed=False)
    save_verdict(record, verdict)
    assert read_verdict(record) == verdict
    assert verdict.who == "A B"
    assert read_verdict(other) is None
    assert problem(other) == ""
    save_verdict(other, verdict)
    assert read_verdict(other) is None
    assert "is about another record" in problem(other)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"outcome": 1}', "[" * 100_000])
def test_a_broken_verdict_is_ignored_with_a_warning(make, call, text):
    record = make("one")
    (record.folder / "verdict.json").write_text(text)
    code, _, err = call("leaderboard", "runs", "--out", "boards")
    assert code == 0
    assert "verdict.json is ignored" in err


def test_boards_say_who_verified_a_row(make, tmp_path):
    records = [make("one", seed=seed) for seed in range(2)]
    for record, outcome in zip(records, ("identical", "differs"), strict=True):
        save_verdict(record, make_verdict(record, outcome, who="Ann_a", sealed=False))
    assert rows(records)["one"].verified.outcome == "differs"  # the bad one is shown
    page = page_of(records, tmp_path / "out")
    assert "2 of 2, differs (Ann\\_a, " in page
    assert "one (re-run differs)" in page
    board = json.loads((tmp_path / "out/leaderboards.json").read_text())["boards"][0]
    assert board["rows"][0]["verified"]["who"] == "Ann_a"


def test_third_party_rows_that_are_not_sealed_stand_apart(make, tmp_path):
    records = [make("ours"), make("theirs", plugin=True, level=0.95)]
    records.append(make("sealed", plugin=True, sealed=True, level=0.5))
    found = rows(records)
    assert list(found) == ["ours", "sealed", "theirs"]
    assert [row.for_development for row in found.values()] == [False, False, True]
    assert found["ours"].scores["AA*"].place == "best"
    assert found["theirs"].scores["AA*"].place == ""
    page = page_of(records, tmp_path / "out")
    before, after = page.split("## Not sealed: for development only")
    assert "theirs (not sealed)" in after
    assert "theirs" not in before
    tex = next((tmp_path / "out").glob("*.tex")).read_text()
    assert r"theirs$^\ddagger$" in tex


def test_a_sealed_run_counts_and_the_ordinary_one_is_named(make, tmp_path):
    sealed = make("one", sealed=True, level=0.6)
    ordinary = dataclasses.replace(make("one", level=0.99), run_id=sealed.run_id)
    [row] = rows([sealed, ordinary]).values()
    assert row.differs_from_ordinary
    assert row.records == (sealed,)
    page = page_of([sealed, ordinary], tmp_path / "out")
    said = f"ordinary {ordinary.metrics['AA*']:.2f}, sealed {sealed.metrics['AA*']:.2f}"
    assert said in page
    assert "one (differs from the ordinary run)" in page


def test_suspicions_are_shown(make, tmp_path):
    page = page_of([make("one", suspicions=["it wrote /tmp/<x>"])], tmp_path / "out")
    assert "one (suspicious)" in page
    assert "it wrote /tmp/&lt;x&gt;" in page


def test_submit_wants_sealed_runs_of_third_party_methods(make, call, monkeypatch):
    from fsdil_bench.records import checks

    monkeypatch.setattr(checks, "_inner_problems", lambda record: ())  # the id is made up
    make("theirs", plugin=True)
    code, _, err = call("submit", "runs", "--out", "mine.zip")
    assert code == 2
    assert "ordinary runs of third-party methods (theirs)" in err
    assert "--sealed" in err
    assert call("submit", "runs", "--unsealed", "--out", "mine")[0] == 0


def test_rank_says_which_board_lacks_what(make, call):
    for method in ("one", "other"):
        for shots in (1, 2):
            make(method, scenario=f"made-{shots}shot", level=len(method) / 6)
    make("third", scenario="made-2shot")
    code, out, _ = call("rank", "runs")
    assert code == 0
    assert "made-1shot, made-clip lacks third" in out
