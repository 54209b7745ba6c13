"""Small pictures of test images beside the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.data.streams import load_stream
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.records.record import find_records
from fsdil_bench.report.leaderboards import thumbnails as thumbnails_module
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.report.leaderboards.thumbnails import COLUMNS, SIDE, write_thumbnails

PUBLISHED = Path(__file__).parents[2] / "leaderboards" / "records" / "drawn-1shot"


@pytest.fixture(scope="module")
def records():
    return [r for name in ("ncm", "ranpac") for r in find_records(PUBLISHED / name)]


def data_of(page: Path):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_pictures_are_those_of_the_ids(records, tmp_path, monkeypatch):
    monkeypatch.setattr(thumbnails_module, "MOST", 23)
    told = []
    files = write_leaderboards(records, tmp_path, thumbnails=True, tell=told.append)
    assert told == []
    [sheet] = data_of(tmp_path / "index.html")["sheets"]
    shown = sheet["thumbnails"]
    assert tmp_path / shown["file"] in files
    assert len(shown["images"]) == len(shown["ids"]) == 23
    assert "img-src 'self'" in (tmp_path / "index.html").read_text(encoding="utf-8")
    whole = np.asarray(Image.open(tmp_path / shown["file"]).convert("RGB")).astype(float)
    assert whole.shape == (2 * SIDE, COLUMNS * SIDE, 3)
    samples = [domain.test for domain in load_stream("drawn-1shot").domains]
    ids = [each for domain in samples for each in domain.ids]
    for k in (0, 22):
        assert shown["ids"][k] == ids[shown["images"][k]]
        y, x = SIDE * (k // COLUMNS), SIDE * (k % COLUMNS)
        drawn = Image.fromarray(samples[0].load(shown["ids"][k])).resize((SIDE, SIDE))
        assert np.abs(whole[y : y + SIDE, x : x + SIDE] - np.asarray(drawn)).mean() < 12


def test_the_same_pictures_are_not_drawn_again(records, tmp_path, monkeypatch):
    monkeypatch.setattr(thumbnails_module, "MOST", 2)
    [sheet] = make_sheets(records)
    first = write_thumbnails([sheet], tmp_path, load_registry(), print)[sheet.name]
    (tmp_path / first.file).write_bytes(b"by another encoder")
    assert write_thumbnails([sheet], tmp_path, load_registry(), print)[sheet.name] == first
    assert (tmp_path / first.file).read_bytes() == b"by another encoder"
    monkeypatch.setattr(thumbnails_module, "MOST", 1)
    other = write_thumbnails([sheet], tmp_path, load_registry(), print)[sheet.name]
    assert [path.name for path in (tmp_path / "thumbnails").iterdir()] == [Path(other.file).name]


def test_without_the_option_the_page_needs_no_other_file(records, tmp_path):
    write_leaderboards(records, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    assert "img-src" not in (tmp_path / "index.html").read_text(encoding="utf-8")
    [sheet] = data_of(tmp_path / "index.html")["sheets"]
    assert "thumbnails" not in sheet
    assert sheet["labels"]  # images are compared all the same


def test_other_images_than_those_of_the_records_are_not_shown(records, made, tmp_path):
    changed = records[0]
    domains = [dict(domain) for domain in changed.scenario["domains"]]
    domains[0]["test_sha256"] = "0" * 64
    scenario = changed.scenario | {"domains": domains}
    other = type(changed)(**vars(changed) | {"scenario": scenario})
    told = []
    sheets = make_sheets([other, made.make_record(tmp_path)])
    assert write_thumbnails(sheets, tmp_path, load_registry(), told.append) == {}
    assert "no thumbnails for drawn: its test images differ here" in told[0]
    assert "no thumbnails for made: " in told[1]


def test_images_of_a_data_folder_are_not_passed_on(made, tmp_path):
    [sheet] = make_sheets([made.make_record(tmp_path, scenario="core50-1shot")])
    told = []
    assert write_thumbnails([sheet], tmp_path, load_registry(), told.append) == {}
    assert told == ["no thumbnails for core50: its images may not be passed on"]
