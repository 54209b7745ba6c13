"""Routing and single images on the page: numbers against an independent count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsdil_bench.records.record import PREDICTIONS_FILE, find_records
from fsdil_bench.report.leaderboards import thumbnails, write_leaderboards

HERE = Path(__file__).parent
PUBLISHED = HERE.parents[1] / "leaderboards" / "records" / "drawn-1shot"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def records(made, tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return {
        (name, seed): made.make_record(
            runs, name, seed=seed, level=level, router=name == "router", images=61
        )
        for name, level in (("router", 0.8), ("plain", 0.6))
        for seed in range(2)
    }


@pytest.fixture(scope="module")
def file(records, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    write_leaderboards(list(records.values()), out)
    return out / "index.html"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A page with pictures, and the file of these."""
    out = tmp_path_factory.mktemp("drawn")
    runs = [r for name in ("ncm", "ranpac") for r in find_records(PUBLISHED / name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thumbnails, "MOST", 45)
        *_, sprite = write_leaderboards(runs, out, thumbnails=True)
    return out / "index.html", sprite


@pytest.fixture
def page(opened, file):
    with opened(file) as page:
        yield page


def arrays_of(record):
    with np.load(record.folder / PREDICTIONS_FILE) as arrays:
        return {name: arrays[name].tolist() for name in arrays.files}


def numbers(table):
    rows = table.locator("tbody tr").all()
    return [[float(text) for text in row.locator("td").all_text_contents()] for row in rows]


def pick(page, *names):
    for name in names:
        page.get_by_label(f"compare {name}", exact=True).check()
    return page.locator(".flips")


def test_what_a_router_takes_for_what(page, records):
    def by_hand(seeds, t):
        shares = np.zeros((t + 1, t + 1))
        for seed in seeds:
            arrays = arrays_of(records["router", seed])
            for true, chosen in zip(arrays["domains"], arrays[f"routed_{t}"], strict=False):
                shares[true, chosen] += 100 / 61 / len(seeds)
        return pytest.approx(shares, abs=0.11)

    page.get_by_role("button", name="router", exact=True).click()
    dialog = page.locator("dialog")
    assert np.array(numbers(dialog.locator(".confusion"))) == by_hand([0, 1], 3)
    assert dialog.locator(".confusion td.own").count() == 4
    assert "Most common mistake" in dialog.text_content()
    dialog.get_by_label("after").select_option(label="domain 1")
    assert np.array(numbers(dialog.locator(".confusion"))) == by_hand([0, 1], 1)
    dialog.get_by_label("seeds").select_option("1")
    assert np.array(numbers(dialog.locator(".confusion"))) == by_hand([1], 3)
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="plain", exact=True).click()
    assert dialog.locator(".confusion").count() == 0


def test_flips_are_those_of_the_predictions(page, records):
    flips = pick(page, "router", "plain")
    chosen = {name: flips.locator(f"[data-pick={name}] select") for name in ("a", "b")}
    a, b = (box.input_value() for box in chosen.values())
    assert {a, b} == {"router", "plain"}
    for seed in (0, 1):
        flips.get_by_label("seed").select_option(str(seed))
        one, other = arrays_of(records[a, seed]), arrays_of(records[b, seed])
        right = list(
            zip(one["labels"], one["domains"], one["classes_3"], other["classes_3"], strict=True)
        )
        only_a = [(y, d) for y, d, p, q in right if p == y != q]
        only_b = [(y, d) for y, d, p, q in right if q == y != p]
        said = flips.locator("p[role=status]").text_content()
        assert f"Of 244 test images, {len(only_a)} are right only with A" in said
        assert f"and {len(only_b)} only with B" in said
        both = sum(p == q == y for y, _, p, q in right)
        assert f"{both} are right with both" in said
        domains, classes = flips.locator("table").all()
        assert numbers(domains) == [
            [x, y, x - y]
            for k in range(4)
            for x, y in [(sum(d == k for _, d in only_a), sum(d == k for _, d in only_b))]
        ]
        names = classes.locator("tbody th").all_text_contents()
        for name, found in zip(names, numbers(classes), strict=True):
            k = int(name.removeprefix("class "))
            assert found[:2] == [sum(y == k for y, _ in only) for only in (only_a, only_b)]
        first = flips.locator(".images").first.locator("li").first.text_content()
        label, domain = only_a[0]
        assert first.startswith(f"class {label}domain {domain}, test image ")
    # The other way round.
    chosen["a"].select_option(b)
    chosen["b"].select_option(a)
    assert (
        f"{len(only_b)} are right only with A ({b})" in flips.locator("p[role=status]").inner_text()
    )
    assert page.evaluate("document.activeElement.tagName") == "SELECT"  # the focus stays


def test_pictures_of_flipped_images(opened, drawn):
    file, sprite = drawn
    with opened(file, also=[sprite]) as page:
        flips = pick(page, "ncm", "ranpac")
        pictures = flips.locator(".thumbnail")
        pictures.first.wait_for()
        assert 5 < pictures.count() <= 45
        assert pictures.first.bounding_box()["width"] == thumbnails.SIDE
        assert sprite.name in pictures.first.evaluate("e => getComputedStyle(e).backgroundImage")
        line = flips.locator(".images li").first.text_content()
        assert "/test/" in line  # the id of the image
        # Every picture is cut from another place.
        places = pictures.evaluate_all("all => all.map((e) => e.style.backgroundPosition)")
        assert len(set(places)) == len(places)
        page.wait_for_load_state("networkidle")


def test_runs_without_predictions_cannot_be_compared(opened, made, tmp_path):
    kept = [made.make_record(tmp_path / "runs", name) for name in ("one", "two", "three")]
    (kept[0].folder / PREDICTIONS_FILE).unlink()
    (kept[1].folder / PREDICTIONS_FILE).unlink()
    write_leaderboards(kept, tmp_path / "out")
    with opened(tmp_path / "out" / "index.html") as page:
        flips = pick(page, "one", "two")
        assert "no two methods here with a prediction" in flips.text_content()


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_scrolls_sideways(opened, drawn, file, width):
    with opened(drawn[0], also=[drawn[1]], width=width, has_touch=True) as page:
        pick(page, "ncm", "ranpac")
        assert page.evaluate(OVERFLOW) <= 0
    with opened(file, width=width, has_touch=True) as page:
        page.get_by_role("button", name="router", exact=True).click()
        assert page.locator("dialog").evaluate("box => box.scrollWidth - box.clientWidth") <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(page, theme):
    if theme == "dark":
        page.locator("#theme").click()
    pick(page, "router", "plain")
    page.get_by_role("button", name="router", exact=True).click()
    page.wait_for_timeout(300)  # colours fade
    found = page.evaluate((HERE / "contrast.js").read_text(encoding="utf-8"))
    assert found["worst"][0] >= 4.5, found
