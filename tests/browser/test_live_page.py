"""The served page in a real browser: it is current, and a reader loses nothing by it."""

from __future__ import annotations

import json

import pytest
from view_world import served

from fsdil_bench.runs.run_folder import RunFolder

NASTY = "</script><img src=x onerror=window.hit=1>"
LEVELS = {"best": 0.9, "middle": 0.75, "worst": 0.5}


@pytest.fixture
def runs(made, tmp_path):
    for method, level in LEVELS.items():
        for shots in (1, 4):
            for seed in range(2):
                made.make_record(
                    tmp_path / "runs", method, f"made-{shots}shot", seed, level=level,
                    router=method == "middle",
                )  # fmt: skip
    return tmp_path / "runs"


@pytest.fixture
def board(runs, monkeypatch):
    with served(runs, monkeypatch) as found:
        found.wait_for_runs(12)
        yield found


@pytest.fixture
def page(browser, board):
    context = browser.new_context(viewport={"width": 1100, "height": 500}, color_scheme="light")
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    outside = []
    page.on("request", lambda request: outside.append(request.url))
    page.goto(board.url)
    page.locator("tr[data-label=worst]").wait_for()
    yield page
    assert not page.evaluate("window.hit")
    assert page.complaints == []
    assert {url.partition("#")[0] for url in outside} <= {board.url, f"{board.url}state"}
    context.close()


def version(page):
    return page.evaluate("document.documentElement.dataset.version")


def after_a_new_record(page, made, runs, method="added"):
    """Add a record, and wait until the page shows it."""
    before = version(page)
    made.make_record(runs, method, "made-1shot", level=0.7)
    page.wait_for_function(
        "before => document.documentElement.dataset.version !== before", arg=before, timeout=60_000
    )
    page.locator(f"tr[data-label={method}]").wait_for(state="attached")


def order(page):
    return [row.get_attribute("data-label") for row in page.locator(".board tbody tr").all()]


def test_a_new_record_comes_by_itself(page, made, runs):
    assert order(page) == ["best", "middle", "worst"]
    assert "12 runs are complete" in page.locator("main > section").first.text_content()
    after_a_new_record(page, made, runs)
    assert sorted(order(page)) == ["added", "best", "middle", "worst"]


def test_the_reader_keeps_sorting_choice_and_place(page, made, runs):
    page.locator("button[data-sort='4 FA*']").click()  # best first
    page.locator("button[data-sort='4 FA*']").click()
    page.get_by_label("compare worst").check()
    page.get_by_label("compare middle").check()
    page.locator("details.compare select").first.select_option("4")
    page.locator("summary", has_text="Accuracy against cost").click()  # closes it
    page.locator("#free").check()
    page.locator("summary", has_text="Reported in the paper").click()
    page.evaluate("scrollTo(0, 330)")
    place = "document.querySelector('#boards .sheet').getBoundingClientRect().top"
    before = page.evaluate(place)
    assert page.evaluate("scrollY") == 330
    after_a_new_record(page, made, runs)
    page.wait_for_function(f"Math.abs({place} - {before}) < 2")
    assert page.locator("th[aria-sort=ascending]").text_content() == "FA*"
    assert order(page)[:3] == ["worst", "middle", "best"]
    assert page.get_by_label("compare worst").is_checked()
    assert page.get_by_label("compare middle").is_checked()
    assert not page.get_by_label("compare best").is_checked()
    compare = page.locator("details.compare")
    assert compare.get_attribute("open") is not None
    assert compare.locator("select").first.input_value() == "4"
    scatter = page.locator("details", has=page.locator("summary", has_text="Accuracy against cost"))
    assert scatter.get_attribute("open") is None
    paper = page.locator("details", has=page.locator("summary", has_text="Reported in the paper"))
    assert paper.get_attribute("open") is not None
    assert page.locator("#free").is_checked()


def test_the_reader_keeps_what_is_typed_and_focused(page, made, runs):
    page.locator("#text").fill("never")  # in the summary of all of them
    page.locator("#text").press("ArrowLeft")
    after_a_new_record(page, made, runs)
    assert page.locator("#text").input_value() == "never"
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.evaluate("document.activeElement.selectionStart") == 4
    page.locator("button[data-sort=method]").focus()
    after_a_new_record(page, made, runs, "another")
    assert page.evaluate("document.activeElement.dataset.sort") == "method"


def test_a_reader_who_types_is_not_interrupted(page, made, runs, board):
    page.evaluate("setInterval(() => dispatchEvent(new Event('keydown')), 200)")
    before = version(page)
    made.make_record(runs, "added", level=0.7)
    board.wait_for_runs(13)
    page.wait_for_timeout(4000)
    assert version(page) == before


def test_the_reader_keeps_the_details_of_a_method(page, made, runs):
    page.locator("tr[data-label=middle] .method button").first.click()
    dialog = page.locator("#details")
    dialog.get_by_text("4-shot", exact=True).click()
    dialog.locator("select").first.select_option("1")
    dialog.locator("select").nth(1).select_option("1")
    page.evaluate("document.getElementById('details').scrollTop = 150")
    after_a_new_record(page, made, runs)
    assert dialog.is_visible()
    assert dialog.locator("h2").text_content() == "middle"
    assert dialog.get_by_label("4-shot").is_checked()
    assert dialog.locator("select").first.input_value() == "1"
    assert dialog.locator("select").nth(1).input_value() == "1"
    assert page.evaluate("document.getElementById('details').scrollTop") == 150


def test_it_says_what_is_going_on(page, runs, made, tmp_path):
    spec = made.make_record(tmp_path / "elsewhere", "a").spec
    folders = {}
    for method, log in (
        ("works", ""),
        ("broken", f"Traceback (most recent call last):\n x\nE: {NASTY}\n"),
    ):
        folder = folders[method] = runs / "made-1shot" / method / f"seed0-{method}"
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec | {"method": method}))
        (folder / "log.txt").write_text(log)
    panel = page.locator("main > section").first
    with RunFolder(folders["works"]).locked():
        panel.get_by_text("1 run is at work.").wait_for()
        rows = panel.locator("tbody tr").all_text_contents()
        assert len(rows) == 2
        assert rows[0].startswith("works on made-1shot, seed 0running0 of 4")
        assert "onerror=window.hit=1" in rows[1]
        assert "1 failed." in panel.text_content()
    panel.get_by_text("No run is at work.").wait_for()
    panel.get_by_text("1 was stopped before the end.").wait_for()


def test_it_says_when_nobody_answers(page, board):
    board.server.shutdown()
    board.server.server_close()
    panel = page.locator("main > section").first
    panel.get_by_text("The server does not answer").wait_for(timeout=30_000)
    assert panel.locator("h2").text_content() == "Not live"
    assert order(page) == ["best", "middle", "worst"]  # what it knew is still there
    page.complaints.clear()  # the browser notes each question without an answer


def test_a_page_without_runs_waits_for_the_first(browser, made, tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    with served(tmp_path / "none", monkeypatch) as board:
        page = browser.new_page()
        page.goto(board.url)
        page.get_by_text("No run is complete yet.").wait_for()
        assert page.get_by_text("There is no result yet.").is_visible()
        made.make_record(tmp_path / "none", "first")
        page.locator("tr[data-label=first]").wait_for(timeout=60_000)
        page.close()
