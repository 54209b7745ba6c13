"""Records, boards and comparisons in a notebook: complete, harmless, readable."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest

import fsdil_bench
from fsdil_bench.errors import RecordError, RequestError
from fsdil_bench.shown import Cell, Strong, Table, Title, as_html, as_text

EVIL = "<script>alert(1)</script>\n\x1b[2J&\"'"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def tags(html):
    parser = Tags()
    parser.feed(html)
    return parser.found


def check_harmless(html):
    """No tag but those of tables and lines, and no attribute but style."""
    found = tags(html)
    assert {tag for tag, _ in found} <= {
        "div",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert {name for _, attributes in found for name in attributes} <= {"style"}
    assert "\x1b" not in html


def evil_record(record):
    """A record in which every name is an attack."""
    scenario = record.scenario | {
        "domains": [d | {"name": EVIL} for d in record.scenario["domains"]]
    }
    spec = record.spec | {"method": EVIL, "backbone": EVIL}
    return dataclasses.replace(
        record, spec=spec, scenario=scenario, warnings=[EVIL], run_id=EVIL, content_sha256=None
    )


def test_a_table_as_html_and_as_text():
    parts = [
        Title("a & b"),
        "a line",
        Table(["name", "x"], [["one", Cell("1.0", share=0.5)], ["二", Cell("10.0", strong=True)]]),
        Strong("the best"),
    ]
    html = as_html(parts)
    check_harmless(html)
    assert "<strong>a &amp; b</strong>" in html
    assert "rgba(40,120,200,0.28)" in html
    assert "<strong>10.0</strong>" in html
    assert "bold: the best" in html
    assert as_text(parts).splitlines() == [
        "a & b",
        "a line",
        "",
        "name       x",
        "────────────",
        "one      1.0",
        "二    *10.0*",
        "",
        "*...*: the best",
    ]


def test_colours_leave_the_text_to_light_and_dark(toy_run):
    html = toy_run()._repr_html_()
    assert not re.search(r"(?<!-)color:", html)
    assert set(re.findall(r"background:(\w+)", html)) == {"rgba", "transparent"}


def test_a_record_shows_itself(toy_run):
    record = toy_run("toy-router", seed=2)
    html, text = record._repr_html_(), str(record)
    for shown in (html, text):
        assert "toy-router on toy-1shot, toy-clip, seed 2" in shown
        assert all(name in shown for name in ("d0", "d3", "AA*", "FA*", "with oracle domain"))
        assert f"{record.metrics['AA*']:.2f}" in shown
        assert "routing accuracy at the end: " in shown
        assert record.run_id in shown
    assert repr(record).startswith("<Record toy-router on toy-1shot, toy-clip, seed 2: AA* ")
    assert "\n" not in repr(record)


def test_names_in_a_record_are_text(toy_run):
    record = evil_record(toy_run())
    html = record._repr_html_()
    check_harmless(html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\x1b" not in str(record)
    assert "\x1b" not in repr(record)
    assert "\n" not in repr(record)


def test_boards_of_records_and_of_folders(toy_run, tmp_path):
    records = [toy_run(seed=seed) for seed in range(2)]
    records += [toy_run("toy-router", seed=seed) for seed in range(2)]
    toy_run("toy-means", "toy-2shot")
    boards = fsdil_bench.load_boards(tmp_path / "runs")
    assert [board.key.scenario for board in boards] == ["toy-1shot", "toy-2shot"]
    [board] = fsdil_bench.load_boards(*records)
    assert [row.label for row in board.rows] == [row.label for row in boards[0].rows]
    text, html = str(board), board._repr_html_()
    for shown in (text, html):
        assert all(name in shown for name in ("toy-means", "toy-router", "AA*", "routing", "±"))
    assert "the best" in text or "not sealed" in text
    assert repr(board).startswith("<Board toy-1shot, toy-clip: toy-")
    assert str(boards).count("toy-clip") == 2
    assert repr(boards).startswith("<Boards: <Board toy-1shot")
    assert boards._repr_html_().count("<table") == 2


def test_names_on_a_board_are_text(made, tmp_path):
    record = made.make_record(tmp_path, method="ncm")
    [board] = fsdil_bench.load_boards(record)
    row = dataclasses.replace(board.rows[0], label=EVIL)
    key = board.key._replace(backbone=EVIL)
    html = dataclasses.replace(board, key=key, rows=(row,))._repr_html_()
    check_harmless(html)
    assert "&lt;script&gt;" in html


def test_marks_are_those_of_the_leaderboards(made, tmp_path):
    records = [made.make_record(tmp_path, method="good", seed=seed) for seed in range(3)]
    records += [made.make_record(tmp_path, method="bad", level=0.5, seed=s) for s in range(3)]
    records += [made.make_record(tmp_path, method="keeper", level=0.9, exemplar_free=False)]
    text = str(fsdil_bench.load_boards(*records))
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert rows["good"].count("*") == 8  # four scores between stars
    assert "*" not in rows["bad"]
    assert rows["keeper"].startswith("keeper *")
    assert "* keeps old images" in text
    assert rows["keeper"].count("°") == 4
    assert "° a single seed" in text


def test_a_board_of_nothing(tmp_path):
    with pytest.raises(RecordError, match="no complete run"):
        fsdil_bench.load_boards(tmp_path)
    with pytest.raises(RecordError, match="no folder"):
        fsdil_bench.load_boards()


def test_a_comparison_shows_itself(made, tmp_path):
    good = [made.make_record(tmp_path, method="good", seed=seed) for seed in range(3)]
    bad = [made.make_record(tmp_path, method="bad", level=0.5, seed=s) for s in range(3)]
    found = fsdil_bench.compare(good, bad)
    text, html = str(found), found._repr_html_()
    check_harmless(html)
    for shown in (text, html):
        assert found.overall.summary in shown
        assert all(name in shown for name in ("AA*", "domain 0", "95% interval"))
    assert repr(found) == f"<Comparison: {found.overall.summary}>"
    one = fsdil_bench.compare(good[0], bad[0])
    assert one.overall.seeds == (0,)
    with pytest.raises(RequestError):
        fsdil_bench.compare([], bad)


def test_ipython_takes_the_text_that_is_for_it(made, tmp_path):
    from IPython.core.formatters import DisplayFormatter

    record = made.make_record(tmp_path)
    for value in (record, fsdil_bench.load_boards(record), fsdil_bench.load_boards(record)[0]):
        bundle, _ = DisplayFormatter().format(value)
        assert bundle["text/plain"] == str(value)
        assert bundle["text/html"] == value._repr_html_()


@pytest.mark.parametrize("kind", ["matrix", "curves", "cost"])
def test_a_picture_of_a_run(made, tmp_path, kind):
    record = made.make_record(tmp_path / "runs")
    picture = fsdil_bench.plot(kind, record)
    assert picture._repr_png_().startswith(b"\x89PNG")
    file = picture.save(tmp_path / "figure.svg")
    assert "<svg" in file.read_text()


def test_pictures_of_several_runs(made, tmp_path):
    good = [made.make_record(tmp_path, method="good", seed=seed) for seed in range(2)]
    bad = [made.make_record(tmp_path, method="bad", level=0.5, seed=s) for s in range(2)]
    made.make_record(tmp_path, method="good", scenario="made-4shot")
    for kind, runs in (
        ("comparison", (good, bad)),
        ("forgetting", (good, bad)),
        ("cost", (good, bad)),
        ("shots", (tmp_path,)),
    ):
        assert fsdil_bench.plot(kind, *runs)._repr_png_().startswith(b"\x89PNG")
    assert fsdil_bench.plot("forgetting", *good, *bad, methods=["good"]).png


def test_pictures_that_there_are_not(made, tmp_path):
    record = made.make_record(tmp_path)
    for call, message in (
        (("curve", record), "curves"),
        (("curves",), "no runs"),
        (("curves", [record, record]), "of one run"),
        (("comparison", record), "two methods"),
    ):
        with pytest.raises(RequestError, match=message):
            fsdil_bench.plot(*call)
    with pytest.raises(RequestError, match="several"):
        fsdil_bench.plot("curves", record, methods=["made"])
