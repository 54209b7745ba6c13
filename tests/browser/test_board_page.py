"""The leaderboards' page in a real browser: chromium, driven by playwright.

Skipped, with the reason, where either is not installed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.report.leaderboards import write_leaderboards

HERE = Path(__file__).parent
NASTY = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>"
LEVELS = {"best": 0.9, "nearly": 0.897, "middle": 0.75, "worst": 0.5}


@pytest.fixture(scope="module")
def board(made, tmp_path_factory):
    """A page with all there can be: two data sets, ties, a ceiling, gaps, a failure, ill names."""
    tmp_path = tmp_path_factory.mktemp("board")
    runs = tmp_path / "runs"
    records = [
        made.make_record(
            runs, method, f"made-{shots}shot", seed, level=level, router=method == "middle",
            sealed=method == "middle", summary=f"the {method} one", config={"lr": level},
        )
        for method, level in LEVELS.items()
        for shots in (1, 4)
        for seed in range(3)
    ]  # fmt: skip
    records += [made.make_record(runs, "keeper", level=0.95, exemplar_free=False, seed=1)]
    records += [
        made.make_record(
            runs, NASTY, "other-2shot", seed, summary=NASTY, backbone=NASTY,
            config={NASTY: NASTY}, processor=NASTY,
        )
        for seed in range(2)
    ]  # fmt: skip
    failed = Unfinished(
        "f", records[0].spec | {"method": "never", "seed": 0}, f"ValueError {NASTY}"
    )
    write_leaderboards(records, tmp_path / "out", [failed])
    return tmp_path / "out" / "index.html"


@pytest.fixture
def page(opened, board):
    with opened(board) as page:
        yield page


def sheet(page, title="made"):
    return page.locator("section.sheet", has=page.locator("h2", has_text=f"{title} ·"))


def labels(page):
    return (
        sheet(page)
        .locator(".board tbody tr")
        .evaluate_all("rows => rows.map(r => r.dataset.label)")
    )


def open_details(page, label):
    sheet(page).get_by_role("button", name=label, exact=True).click()
    return page.locator("dialog#details")


def test_the_table_shows_scores_standings_and_gaps(page):
    table = sheet(page).locator("table.board")
    best = table.locator("tr[data-label=best] td.score")
    assert re.match(r"\d\d\.\d\d best± \d\.\d\d", best.nth(0).text_content().strip())
    assert "best" in best.nth(0).get_attribute("class")
    assert "≈" in table.locator("tr[data-label=nearly] td.score").nth(0).text_content()
    assert "≈" not in table.locator("tr[data-label=worst] td.score").nth(0).text_content()
    assert table.locator("tr[data-label=never] td.score").nth(0).text_content() == "failed"
    keeper = table.locator("tr[data-label=keeper]")
    assert "keeps images" in keeper.text_content()
    assert "°" in keeper.locator("td.score").nth(0).text_content()
    assert "1/3 seeds" in keeper.locator("td.score").nth(0).text_content()
    assert keeper.locator("td.score").nth(2).text_content() == "–"
    assert "sealed" in table.locator("tr[data-label=middle]").text_content()


def test_tables_say_how_many_test_images_they_have(page, board):
    index = (board.parent / "README.md").read_text()
    written = re.findall(r"## (made|other),.*?([1-9][0-9,]*) test images\.", index, re.DOTALL)
    assert len(written) == 2
    for title, count in written:
        assert f" · {count} test images · " in sheet(page, title).locator("header p").inner_text()


def test_sorting(page):
    head = sheet(page).locator("th", has=page.locator("[data-sort='1 AA*']"))
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert labels(page) == ["keeper", "best", "nearly", "middle", "worst", "never"]
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    # What has no value comes last either way.
    assert labels(page) == ["worst", "middle", "nearly", "best", "keeper", "never"]
    sheet(page).locator("[data-sort=method]").click()
    assert labels(page) == sorted(labels(page))
    assert head.get_attribute("aria-sort") == "none"
    page.select_option("#columns", "time per image")
    sheet(page).locator("[data-sort='4 learning an image']").click()
    assert labels(page)[:4] == ["worst", "middle", "nearly", "best"]


def test_filters(page):
    assert page.locator("section.sheet table.board").count() == 2
    page.select_option("#dataset", "made")
    assert page.locator("section.sheet table.board").count() == 1
    page.fill("#text", "middle one")
    assert labels(page) == ["middle"]
    assert page.locator("#count").text_content() == "1 of 7 methods shown"
    page.fill("#text", "0.897")  # an option
    assert labels(page) == ["nearly"]
    page.fill("#text", "")
    page.check("#free")
    assert "keeper" not in labels(page)
    page.check("#sealed")
    assert labels(page) == ["middle"]
    page.uncheck("#sealed")
    page.get_by_label("4", exact=True).uncheck()
    assert sheet(page).locator("thead th[colspan]").all_text_contents() == ["1-shot"]
    page.select_option("#backbone", "made-clip")
    page.fill("#text", "no such thing")
    assert "Nothing fits" in page.locator("#boards").text_content()


def test_the_address_holds_the_view(page, browser):
    page.fill("#text", "e")
    page.check("#free")
    page.get_by_label("4", exact=True).uncheck()
    page.select_option("#columns", "Avg and Last")
    page.select_option("#dataset", "made")
    other = browser.new_page()
    other.goto(page.url)
    assert labels(other) == labels(page)
    assert other.input_value("#text") == "e"
    assert other.input_value("#columns") == "Avg and Last"
    assert not other.get_by_label("4", exact=True).is_checked()
    other.goto(page.url.partition("#")[0] + "#columns=constructor&dataset=nowhere&shots=x")
    other.reload()
    assert "Nothing fits" in other.locator("#boards").text_content()
    assert other.input_value("#columns") == "AA* and FA*"
    other.close()


def test_details(page):
    dialog = open_details(page, "middle")
    assert dialog.locator("h2").text_content() == "middle"
    assert dialog.locator(".heat:not(.confusion) tbody tr").count() == 4
    assert dialog.locator(".heat:not(.confusion) tbody td:not(:empty)").count() == 10
    text = dialog.text_content()
    for expected in ("Forgetting", "Guessing the domain", "Cost", "Provenance", "Options", "lr"):
        assert expected in text
    command = dialog.locator(".command code").text_content()
    assert "--method middle --scenario made-1shot --seeds 0-2" in command
    assert dialog.locator("svg path").count() >= 3
    whole = dialog.locator(".heat tbody td").first.text_content()
    seeds = []
    for seed in "012":
        dialog.get_by_label("seeds").select_option(seed)
        seeds.append(float(dialog.locator(".heat tbody td").first.text_content()))
    assert sum(seeds) / 3 == pytest.approx(float(whole), abs=0.11)
    dialog.get_by_label("4-shot").check()
    assert "made-4shot" in dialog.locator(".command code").text_content()
    assert dialog.get_by_label("seeds").input_value() == "mean"  # that seed may not be here
    dialog.get_by_role("button", name="Close").click()
    assert not dialog.is_visible()
    never = open_details(page, "never")
    assert "ValueError" in never.text_content()


def test_comparison(page):
    panel = sheet(page).locator("details.compare")
    for method in ("best", "worst"):
        sheet(page).get_by_label(f"compare {method}", exact=True).check()
    assert "2 chosen" in panel.locator("summary").text_content()
    assert panel.locator("figure").count() == 3  # the mean, and one of each method
    panel.locator("table tbody tr").nth(1).wait_for()
    difference = panel.locator("table tbody tr").nth(1).locator("td").first.text_content()
    value, apart = map(float, re.fullmatch(r"([\d.]+) \(([-+][\d.]+)\)", difference).groups())
    base = float(panel.locator("table tbody tr").nth(0).locator("td").first.text_content())
    assert value - base == pytest.approx(apart, abs=0.011)
    panel.get_by_role("button", name="Clear").click()
    assert panel.locator("figure").count() == 0
    assert sheet(page).locator(".board input:checked").count() == 0


def test_accuracy_against_cost(page):
    panel = sheet(page).locator("details.panel", has_text="Accuracy against cost")
    assert panel.locator(".point").count() == 5
    for cost in ("learning time", "predicting an image", "trained parameters", "state"):
        panel.get_by_label("cost").select_option(label=cost)
        assert cost in panel.locator("svg[role=group]").get_attribute("aria-label")
    x = {
        point.get_attribute("aria-label").split(":")[0]: float(
            point.locator(".dot").first.get_attribute("cx") or 0
        )
        for point in panel.locator(".point").all()
    }
    assert x["worst"] < x["middle"] < x["best"]  # a larger state is further right
    panel.locator(".point[aria-label^=middle]").press("Enter")
    assert page.locator("dialog h2").text_content() == "middle"


def test_colours_follow_the_system_and_the_switch(page, browser, board):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.reload()  # the choice stays
    assert page.evaluate(ground) == dark
    other = browser.new_context(color_scheme="dark").new_page()
    other.goto(board.as_uri())
    assert other.evaluate(ground) == dark


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast(page, theme):
    if theme == "dark":
        page.locator("#theme").click()
    open_details(page, "middle")
    page.wait_for_timeout(300)  # colours fade
    found = page.evaluate((HERE / "contrast.js").read_text(encoding="utf-8"))
    assert found["texts"] > 100
    assert found["worst"][0] >= 4.5, found


def test_everything_can_be_done_by_keys(page):
    page.locator("#text").focus()
    page.keyboard.type("best")
    assert labels(page) == ["best"]
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    where = "document.activeElement.dataset.sort || document.activeElement.textContent.slice(0, 9)"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(where))
        if reached[-1] == "1 AA*":
            break
    assert reached[-1] == "1 AA*", reached
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    assert labels(page)[0] == "keeper"
    assert page.evaluate("document.activeElement.dataset.sort") == "1 AA*"  # the focus stays
    while page.evaluate("document.activeElement.getAttribute('aria-label')") != "compare keeper":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert sheet(page).get_by_label("compare keeper").is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("dialog h2").text_content() == "keeper"
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert page.evaluate("document.activeElement.textContent") == "keeper"  # back where it was


def test_semantics(page):
    assert page.locator("table.board thead th:not([scope])").count() == 0
    assert (
        page.locator("table.board tbody tr").count()
        == page.locator("table.board tbody th[scope=row]").count()
    )
    assert page.locator("caption").count() >= 2
    assert (
        page.evaluate("""[...document.querySelectorAll("input, select")]
      .filter((box) => !box.labels.length && !box.getAttribute("aria-label")).length""")
        == 0
    )
    assert page.evaluate("document.documentElement.lang") == "en"


def test_names_of_strangers_stay_text(page):
    page.select_option("#dataset", "other")
    button = page.locator("section.sheet tbody .method button")
    assert button.text_content() == NASTY
    button.click()
    dialog = page.locator("dialog")
    assert dialog.text_content().count(NASTY) >= 4
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


@pytest.mark.parametrize("width", [320, 390, 768])
def test_no_width_scrolls_sideways(browser, board, width):
    context = browser.new_context(viewport={"width": width, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(board.as_uri())
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0
    page.select_option("#columns", "parameters and state")  # wider than a telephone
    assert page.evaluate(overflow) <= 0
    for method in ("best", "worst"):
        sheet(page).get_by_label(f"compare {method}", exact=True).check()
    assert page.evaluate(overflow) <= 0
    dialog = open_details(page, "middle")
    assert page.evaluate(overflow) <= 0
    assert dialog.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    context.close()


def test_motion_is_for_those_who_like_it(browser, board):
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.goto(board.as_uri())
    assert (
        page.evaluate("getComputedStyle(document.querySelector('button')).transitionDuration")
        == "0s"
    )


@pytest.mark.slow
def test_a_page_over_two_thousand_records_answers(browser, made, tmp_path):
    """Typing a letter may not take longer than loading the page did."""
    records = made.make_records(tmp_path / "runs", 2000, domains=6, images=60)
    write_leaderboards(records, tmp_path / "out")
    page = browser.new_page()
    page.goto((tmp_path / "out" / "index.html").as_uri())
    assert page.locator("table.board tbody tr").count() == 100
    took = page.evaluate("""() => {
      const box = document.getElementById("text");
      const began = performance.now();
      box.value = "method-1";
      box.dispatchEvent(new Event("input"));
      document.body.offsetHeight;
      const loading = performance.getEntriesByType("navigation")[0];
      return [performance.now() - began, loading.domComplete];
    }""")
    assert page.locator("table.board tbody tr").count() == 55
    assert took[0] < took[1]
