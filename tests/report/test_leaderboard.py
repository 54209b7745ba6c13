from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest

from fsdil_bench import find_records
from fsdil_bench.errors import RecordError
from fsdil_bench.report.leaderboards import copy_records, group_into_boards, write_leaderboards


@pytest.fixture
def runs(toy_run, tmp_path):
    for seed in range(3):
        toy_run("toy-means", seed=seed)
    toy_run("toy-router")
    toy_run("toy-means", "toy-2shot")
    return tmp_path / "runs"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_same_records_same_bytes(runs, tmp_path):
    records = find_records(runs)
    write_leaderboards(records, tmp_path / "one")
    write_leaderboards(list(reversed(records)), tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_index_and_page_have_the_title_that_was_asked_for(runs, tmp_path):
    write_leaderboards(find_records(runs), tmp_path, title="Towers <of> my own")
    assert (tmp_path / "README.md").read_text().startswith("# Towers &lt;of&gt; my own\n")
    page = (tmp_path / "index.html").read_text()
    assert page.count("Towers &lt;of&gt; my own") == 2
    assert "FSDIL leaderboards" not in page


def test_tables_say_how_many_test_images_they_have(toy_run, tmp_path):
    small = toy_run(order=["d0", "d1"])
    large = toy_run(order=["d0", "d1", "d2"])
    write_leaderboards([small, large], tmp_path)
    index = (tmp_path / "README.md").read_text()
    counts = [sum(record.test_counts) for record in (small, large)]
    assert counts[0] < counts[1]
    assert [index.count(f" {count} test images.") for count in counts] == [1, 1]
    tables = "".join(path.read_text() for path in tmp_path.glob("*.tex"))
    assert [tables.count(f" {count} test images: ") for count in counts] == [1, 1]


def test_boards_without_records_are_removed_and_nothing_else(runs, tmp_path):
    records = find_records(runs)
    out = tmp_path / "out"
    write_leaderboards(records, out)
    both = set(files_of(out))
    thumbnails = out / "thumbnails"
    thumbnails.mkdir()
    sheet = json.loads((out / "leaderboards.json").read_text())["boards"][0]["sheet"]
    for name in (f"{sheet}-aaaaaa.webp", "mine_aaaaaa-bbbbbb.webp"):
        (thumbnails / name).write_bytes(b"")
    (out / "notes.md").write_text("my own")
    one = [record for record in records if record.spec["scenario"] == "toy-1shot"]
    write_leaderboards(one, out)
    gone = both - set(files_of(out))
    assert gone
    assert all(name.startswith("toy-2shot") for name in gone)
    assert len(list(thumbnails.iterdir())) == 2  # its sheet is still there
    write_leaderboards([], out)
    left = {"README.md", "index.html", "leaderboards.json", "paper.md", "notes.md"}
    assert set(files_of(out)) == left
    assert [file.name for file in thumbnails.iterdir()] == ["mine_aaaaaa-bbbbbb.webp"]


@pytest.mark.parametrize("name", ["notes", "../victim_aaaaaa", "*_aaaaaa"])
def test_a_list_of_boards_from_anybody_removes_no_other_file(tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    kept = [tmp_path / "victim_aaaaaa.md", out / "notes.md", out / "other_aaaaaa.md"]
    for file in kept:
        file.write_text("my own")
    listed = {"boards": [{"sheet": name, "name": name}, {"sheet": 1}]}
    (out / "leaderboards.json").write_text(json.dumps(listed))
    write_leaderboards([], out)
    assert all(file.exists() for file in kept)


def test_board_has_mean_spread_seeds_and_cost(runs, tmp_path):
    records = [r for r in find_records(runs) if r.spec["scenario"] == "toy-1shot"]
    write_leaderboards(records, tmp_path / "out")
    table = pd.read_csv(next((tmp_path / "out").glob("toy-1shot*.csv")))
    row = table.set_index("method").loc["toy-means"]
    values = [r.metrics["AA*"] for r in records if r.spec["method"] == "toy-means"]
    assert row["AA*"] == pytest.approx(sum(values) / 3)
    assert row["AA* std"] == pytest.approx(pd.Series(values).std(ddof=0))
    assert row["seeds"] == 3
    assert row["state bytes"] == 192
    assert table["AA*"].is_monotonic_decreasing
    page = next((tmp_path / "out").glob("toy-1shot*.md")).read_text()
    assert f"{row['AA*']:.2f} ± {row['AA* std']:.2f}" in page
    assert f"{row['AA* low']:.2f} to {row['AA* high']:.2f}" in page
    assert row["AA* low"] < row["AA*"] < row["AA* high"]
    assert "| AA* oracle" in page
    assert "FA* is forgetting alleviation" in page


def built_in(record):
    """The record as if the method came with the harness: its ordinary runs count."""
    method = {name: value for name, value in record.method.items() if name != "plugin"}
    return dataclasses.replace(record, method=method)


def test_times_are_per_training_image_of_the_stream_and_per_prediction(runs, tmp_path):
    records = [built_in(r) for r in find_records(runs) if r.spec["method"] == "toy-means"]
    first, second = [r for r in records if r.spec["scenario"] == "toy-1shot"][:2]
    images = sum(domain["train"] for domain in first.scenario["domains"])

    def costing(record, learn, predict, shown):
        times = {"seconds": {"learn": learn, "predict": predict}}
        return dataclasses.replace(
            record, cost=record.cost | times | {"images": {"learn": shown, "predict": 500}}
        )

    # Twice as many views do not make an image cheaper.
    members = [costing(first, 100.0, 1.0, images), costing(second, 300.0, 3.0, 2 * images)]
    write_leaderboards(members, tmp_path / "out")
    [row] = pd.read_csv(next((tmp_path / "out").glob("toy-1shot*.csv"))).to_dict("records")
    assert row["learn s"] == 200
    assert row["learn s/img"] == pytest.approx(200 / images)
    assert row["predict s/img"] == pytest.approx(4 / 1000)
    page = next((tmp_path / "out").glob("toy-1shot*.md")).read_text()
    heads, values = (
        [cell.strip() for cell in line.split("|")]
        for line in page.splitlines()
        if line.startswith(("| method", "| toy-means"))
    )
    cells = dict(zip(heads, values, strict=True))
    assert cells["learn ms/img"] == f"{200_000 / images:,.0f}"
    assert cells["predict ms/img"] == "4"


def test_scenarios_backbones_and_orders_are_never_mixed(runs, toy_run):
    toy_run("toy-means", order=["d1", "d0"])
    toy_run("toy-means", base_limit=2)
    keys = group_into_boards(find_records(runs))
    assert len(keys) == 4


def test_code_versions_and_configs_get_their_own_rows(runs, tmp_path):
    records = [r for r in find_records(runs) if r.spec["scenario"] == "toy-1shot"]
    means = [r for r in records if r.spec["method"] == "toy-means"]
    changed = dataclasses.replace(
        means[0], run_id="changed", method=means[0].method | {"code": {"method": "newer"}}
    )
    write_leaderboards([*means, changed], tmp_path / "out")
    table = pd.read_csv(next((tmp_path / "out").glob("toy-1shot*.csv")))
    assert sorted(table["seeds"]) == [1, 3]
    assert all(name.startswith("toy-means [") for name in table["method"])


def test_features_of_single_images_are_marked(runs, tmp_path):
    records = [built_in(r) for r in find_records(runs) if r.spec["scenario"] == "toy-1shot"]
    marked = [
        dataclasses.replace(r, method=r.method | {"keeps_features": True})
        if r.spec["method"] == "toy-router"
        else r
        for r in records
    ]
    for name, members in (("plain", records), ("marked", marked)):
        write_leaderboards(members, tmp_path / name)
    plain, page = (
        next((tmp_path / name).glob("toy-1shot*.md")).read_text() for name in ("plain", "marked")
    )
    assert "§" not in plain
    assert "| toy-router § " in page
    assert "| toy-means " in page
    assert "§ keeps no images" in page
    table = pd.read_csv(next((tmp_path / "marked").glob("toy-1shot*.csv"))).set_index("method")
    assert table["keeps features"].to_dict() == {"toy-means": False, "toy-router": True}
    texts = [next((tmp_path / n).glob("toy_*.tex")).read_text() for n in ("plain", "marked")]
    assert [r"toy-router$^\S$ &" in text for text in texts] == [False, True]
    [board] = json.loads((tmp_path / "marked" / "leaderboards.json").read_text())["boards"]
    assert [row["label"] for row in board["rows"] if row.get("keeps_features")] == ["toy-router"]


def test_the_head_is_said_where_there_is_a_choice(runs, tmp_path):
    records = [r for r in find_records(runs) if r.spec["scenario"] == "toy-1shot"]
    chosen = [
        dataclasses.replace(r, spec=r.spec | {"config": r.spec["config"] | {"head": "li|near"}})
        if r.spec["method"] == "toy-router"
        else r
        for r in records
    ]
    for name, members in (("plain", records), ("chosen", chosen)):
        write_leaderboards(members, tmp_path / name)
    plain, page = (
        next((tmp_path / name).glob("toy-1shot*.md")).read_text() for name in ("plain", "chosen")
    )
    assert "head" not in plain
    assert "| li\\|near " in page
    assert "their option `head`" in page
    table = pd.read_csv(next((tmp_path / "chosen").glob("toy-1shot*.csv"))).set_index("method")
    assert table["head"].fillna("").to_dict() == {"toy-means": "", "toy-router": "li|near"}


def test_copies_count_once(runs, tmp_path):
    records = find_records(runs, runs)
    write_leaderboards([*records, *records], tmp_path / "out")
    table = pd.read_csv(next((tmp_path / "out").glob("toy-1shot*.csv")))
    assert table.set_index("method").loc["toy-means", "seeds"] == 3
    index = (tmp_path / "out" / "README.md").read_text()
    row = next(line for line in index.splitlines() if line.startswith("| [toy-1shot]"))
    assert [cell.strip() for cell in row.split("|")][2:4] == ["2", "4"]


def test_half_finished_runs_are_left_out(runs):
    before = len(find_records(runs))
    next(runs.rglob("record.json")).unlink()
    assert len(find_records(runs)) == before - 1


def test_missing_folder(tmp_path):
    with pytest.raises(RecordError, match="does not exist"):
        find_records(tmp_path / "nowhere")


def test_copied_records_make_the_same_boards(runs, tmp_path):
    records = find_records(runs)
    copy_records(records, tmp_path / "out")
    copies = find_records(tmp_path / "out")
    assert [r.run_id for r in copies] == [r.run_id for r in records]
    assert copies[0].predictions().keys() == records[0].predictions().keys()
    assert not list((tmp_path / "out").rglob("state.safetensors"))
    write_leaderboards(records, tmp_path / "one")
    write_leaderboards(copies, tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_the_published_boards_come_from_the_published_records(tmp_path):
    published = Path(__file__).parents[2] / "leaderboards"
    write_leaderboards(find_records(published / "records"), tmp_path, thumbnails=True)
    assert files_of(published) == files_of(tmp_path)
    pictures = {path.name for path in (published / "thumbnails").iterdir()}
    assert pictures == {path.name for path in (tmp_path / "thumbnails").iterdir()}
