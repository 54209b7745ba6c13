"""What the page says about how far rows can be believed, and what boards could have seen."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from fsdil_bench.records.verdict_file import make_verdict, save_verdict
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.report.leaderboards.page import for_script
from fsdil_bench.report.leaderboards.page_data import _evidence

HERE = Path(__file__).parent
NASTY = "<img src=x onerror=window.hit=1>"


def change(file, edit):
    """Write a page again with other data."""
    text = file.read_text(encoding="utf-8")
    before = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    data = json.loads(before)
    edit(data)
    file.write_text(text.replace(before, for_script(json.dumps(data))), encoding="utf-8")


def with_evidence(data):
    [sheet] = data["sheets"]
    rows = {row["label"]: row for row in sheet["rows"]}
    for name in ("stranger", "liar"):
        rows[name]["third"] = True
    confirmed = ["identical", f"Ada {NASTY}", "2026-02-03T04:05:06+00:00", "1.2.3"]
    rows["own"]["cells"]["1"]["verified"] = confirmed
    rows["own"]["cells"]["4"]["verified"] = confirmed
    rows["liar"]["cells"]["1"] |= {
        "verified": ["differs", "Ada", "2026-02-04", "1.2.3"],
        "differs": ["AA* of seed 0 differs."],
        "suspicions": ["It opened a socket.", f"It wrote {NASTY}."],
    }
    for row in rows.values():
        for cell in row["cells"].values():
            cell["scores"][0][4] = "best" if row["label"] == "own" else "behind"
    rows["liar"]["cells"]["1"]["scores"][0][4] = "undecided"
    sheet["smallest_difference"] = [{"AA*": 1.8, "FA*": 2.1}, {"AA*": 0.75}]


@pytest.fixture(scope="module")
def file(made, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("evidence")
    records = [
        made.make_record(tmp_path / "runs", name, f"made-{k}shot", seed, level=level, sealed=sealed)
        for name, level, sealed in (
            ("own", 0.9, False), ("stranger", 0.7, False), ("liar", 0.8, True),
        )
        for k in (1, 4)
        for seed in range(2)
    ]  # fmt: skip
    write_leaderboards(records, tmp_path / "out")
    change(tmp_path / "out" / "index.html", with_evidence)
    return tmp_path / "out" / "index.html"


@pytest.fixture
def page(opened, file):
    with opened(file) as page:
        yield page


def badges(page, label):
    return page.locator(f"tr[data-label={label}] .tag").all_text_contents()


def test_badges(page):
    assert badges(page, "own") == ["✓ verified"]  # its own methods need not be sealed
    assert badges(page, "stranger") == ["⚠ not sealed"]
    assert badges(page, "liar") == [
        "✓ sealed", "⚠ not confirmed", "⚠ differs from its ordinary run", "⚠ suspicious",
    ]  # fmt: skip


def test_a_badge_says_more_by_mouse_keys_and_touch(page, opened, file):
    note = page.locator("#note")
    assert not note.is_visible()
    badge = page.locator("tr[data-label=own] .tag")
    badge.click()
    text = note.text_content()
    for expected in ("1-shot, 4-shot", "Ada <img", "2026-02-03", "1.2.3", "same predictions"):
        assert expected in text
    badge.click()  # again closes it
    assert not note.is_visible()
    badge.focus()
    page.keyboard.press("Enter")
    assert note.is_visible()
    page.keyboard.press("Escape")
    assert not note.is_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert not note.is_visible()
    page.get_by_role("button", name="suspicious").click()
    assert "It opened a socket. It wrote <img" in note.text_content()
    page.locator("h1").click()
    assert not note.is_visible()
    with opened(file, width=390, has_touch=True) as phone:
        phone.locator("tr[data-label=stranger] .tag").tap()
        box = phone.locator("#note").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert phone.evaluate(sideways) <= 0


def test_details_say_it_in_full(page):
    page.get_by_role("button", name="liar", exact=True).click()
    part = page.locator("dialog section", has=page.locator("h3", has_text="Evidence"))
    for expected in ("sealed", "not confirmed", "It opened a socket.", "a different result"):
        assert expected in part.text_content()
    scores = page.locator(
        "dialog section", has=page.locator("h3", has_text="Scores")
    ).text_content()
    assert "This board could have seen a difference of 1.8 points." in scores
    page.get_by_role("radio", name="4-shot").check()
    assert "socket" not in page.locator("dialog").text_content()


def test_partly_sealed_and_verified(opened, file, tmp_path):
    def edit(data):
        rows = {row["label"]: row for row in data["sheets"][0]["rows"]}
        del rows["own"]["cells"]["4"]["verified"]
        for run in rows["liar"]["cells"]["4"]["runs"]:
            del run["sealed"]

    copy = tmp_path / "index.html"
    copy.write_bytes(file.read_bytes())
    change(copy, edit)
    with opened(copy) as page:
        assert badges(page, "own") == ["✓ partly verified"]
        assert badges(page, "liar")[0] == "⚠ partly sealed"
        page.get_by_label("4", exact=True).uncheck()  # badges are about the boards that are shown
        assert badges(page, "own") == ["✓ verified"]
        assert badges(page, "liar")[0] == "✓ sealed"


def test_what_boards_could_have_seen(page):
    one, four = page.locator(".standing li").all_text_contents()
    assert one.startswith("1-shot, AA*: own has the best mean. liar is undecided.")
    assert one.endswith("This board could have seen a difference of 1.8 points.")
    assert four == (
        "4-shot, AA*: own is best; all others that compete are worse."
        " This board could have seen a difference of 0.75 points."
    )
    assert "undecided" in page.locator(".legend").first.text_content()
    cell = page.locator("tr[data-label=liar] td.score").first
    assert cell.text_content().startswith("?")
    assert "undecided" in cell.text_content()
    page.select_option("#columns", "FA* only")
    assert "2.1 points" in page.locator(".standing li").first.text_content()
    page.select_option("#columns", "time per image")
    assert page.locator(".standing").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(page, theme):
    if theme == "dark":
        page.locator("#theme").click()
    page.get_by_role("button", name="suspicious").click()
    page.wait_for_timeout(300)  # colours fade
    found = page.evaluate((HERE / "contrast.js").read_text(encoding="utf-8"))
    assert found["worst"][0] >= 4.5, found


def test_the_fields_of_a_row():
    verdict = SimpleNamespace(outcome="close", who="Ada", when="today", version="1", platform="x")
    row = SimpleNamespace(
        verified=verdict, differs_from_ordinary=True, suspicions=["a", "b"], differences=("c",)
    )
    assert _evidence(row) == {
        "verified": ["close", "Ada", "today", "1"],
        "differs": ["c"],
        "suspicions": ["a", "b"],
    }
    plain = SimpleNamespace(verified=None, differs_from_ordinary=False, suspicions=[])
    assert _evidence(plain) == {}


def test_the_badges_of_records(opened, made, tmp_path):
    own = made.make_record(tmp_path / "runs", "own", suspicions=["It opened a socket."])
    stranger = made.make_record(tmp_path / "runs", "stranger")
    stranger = dataclasses.replace(stranger, method=stranger.method | {"plugin": "other 1.0"})
    save_verdict(own, make_verdict(own, "identical", who="Ada", sealed=False))
    assert stranger.third_party
    write_leaderboards([own, stranger], tmp_path / "out")
    with opened(tmp_path / "out" / "index.html") as page:
        assert badges(page, "own") == ["✓ verified", "⚠ suspicious"]
        assert badges(page, "stranger") == ["⚠ not sealed"]
        page.get_by_role("button", name="verified").click()
        assert "1-shot: run again by Ada on 20" in page.locator("#note").text_content()
