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


@pytest.fixture
def two_boards(make):
    """Two methods on two boards, and a third on one of them."""
    for method in ("one", "other"):
        for shots in (1, 2):
            make(method, scenario=f"made-{shots}shot", level=len(method) / 6)
    make("third", scenario="made-2shot")


def test_rank_says_which_board_lacks_what(two_boards, call):
    code, out, _ = call("rank", "runs")
    assert code == 0
    assert [line for line in out.splitlines() if "lacks" in line] == [
        "made-1shot, made-clip lacks third"
    ]
    found = json.loads(call("rank", "runs", "--json")[1])
    lacking = {board["scenario"]: board["lacking"] for board in found["boards"]}
    assert lacking == {"made-1shot": ["third"], "made-2shot": []}


def test_rank_says_so_also_where_too_few_methods_are_left(make, call):
    for method, shots in (("one", 1), ("one", 2), ("other", 2)):
        make(method, scenario=f"made-{shots}shot")
    code, out, err = call("rank", "runs")
    assert code == 2
    assert out == "made-1shot, made-clip lacks other\n"
    assert "fewer than two methods are on all boards" in err


def test_rank_of_published_boards(two_boards, call, tmp_path):
    ranks = json.loads(call("rank", "runs", "--json")[1])
    write = ("leaderboard", "runs", "--out", "boards")
    assert call(*write)[0] == 0
    code, _, err = call("rank", "boards")
    assert code == 2
    assert "boards holds boards without records: make them again with --copy-records" in err
    assert call(*write, "--copy-records")[0] == 0
    for place in ("boards", "boards/leaderboards.json", "boards/records"):
        assert json.loads(call("rank", place, "--json")[1]) == ranks
    (tmp_path / "empty").mkdir()
    assert "no complete run below empty" in call("rank", "empty")[2]


def shown(call, record):
    """What `show` prints, on one line, and its evidence for programs."""
    code, out, err = call("show", record.folder)
    assert code == 0, err
    return " ".join(out.split()), json.loads(call("show", record.folder, "--json")[1])["evidence"]


def test_show_says_how_far_a_run_can_be_believed(make, call):
    text, found = shown(call, make("ours"))
    assert "sealed no verified no: nobody has run it again" in text
    assert found == {
        "sealed": False, "third_party": False, "for_development": False, "verified": None,
        "differs_from_ordinary": False, "suspicions": [],
    }  # fmt: skip
    text, found = shown(call, make("theirs", plugin=True))
    assert "for development only" in text
    assert found["for_development"]


def test_show_says_what_was_found_about_a_sealed_run(make, call):
    doubtful = {"suspicions": ["it wrote /tmp/x"], "ordinary_run": "other predictions"}
    record = make("theirs", plugin=True, sealed=True, **doubtful)
    verdict = make_verdict(record, "differs", who="Ann", sealed=True)
    save_verdict(record, verdict)
    text, found = shown(call, record)
    assert "sealed yes" in text
    assert "for development" not in text
    assert f"differs: run again by Ann on {verdict.when} with fsdil-bench {verdict.version}" in text
    assert "its ordinary run made different predictions" in text
    assert "suspicious it wrote /tmp/x" in text
    assert found["verified"] == dataclasses.asdict(verdict)
    assert found["suspicions"] == ["it wrote /tmp/x"]
    assert found["differs_from_ordinary"]


def test_show_ignores_a_verdict_on_another_record_with_a_warning(make, call):
    record = make("one")
    save_verdict(record, make_verdict(make("other"), "identical", who="Ann", sealed=False))
    code, out, err = call("show", record.folder)
    assert code == 0
    assert "Ann" not in out
    assert "verdict.json is ignored: it is about another record" in err
