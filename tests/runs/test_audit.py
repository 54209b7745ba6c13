"""The audit of state size: what it says, when, and where it is shown."""

from __future__ import annotations

import dataclasses
import json

import pandas as pd
import pytest
import torch
import toy_plugin

from fsdil_bench import Record, find_records
from fsdil_bench.report import terminal as tables
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.runs.audit import audit_state, worst

IMAGES = [100, 10, 10]  # of 3 x 2 x 2 = 12 bytes, with features of 2 x 4 = 8 bytes


def audit(*state):
    return audit_state(state, IMAGES, size=2, embed_dim=2)


def test_a_small_state_is_not_worth_a_word():
    assert audit(0, 0, 0) == []
    assert audit(799, 799, 799) == []
    assert audit(700, 779, 700) == []


def test_a_state_as_large_as_the_images():
    [found] = audit(1200, 1200, 1200)
    assert found == {
        "kind": "images",
        "what": "the state could hold all training images seen so far",
        "domain": 0,
        "bytes": 1200,
        "limit": 1200,
    }
    [found] = audit(800, 800, 800)
    assert found["what"] == (
        "the state could hold the frozen features of all training images seen so far"
    )
    assert (found["domain"], found["limit"]) == (0, 800)


def test_growth_as_large_as_the_images_of_a_domain():
    [found] = audit(100, 100, 220)
    assert found["what"] == "what the state grew by could hold the training images of the domain"
    assert (found["kind"], found["domain"], found["bytes"]) == ("images", 2, 120)
    assert found["limit"] == 120
    [found] = audit(100, 180, 200)
    assert (found["kind"], found["domain"], found["bytes"]) == ("features", 1, 80)
    assert audit(300, 100, 179) == []  # shrinking is not growing


def test_the_domain_with_the_largest_excess_is_named():
    findings = audit(1300, 2800, 2900)
    assert [(f["domain"], f["bytes"], f["limit"]) for f in findings] == [
        (1, 2800, 1320),
        (1, 1500, 120),
    ]


def test_the_worst_is_what_a_board_shows():
    assert worst([]) == ""
    assert worst([{"kind": "features"}]) == "features"
    assert worst([{"kind": "features"}, {"kind": "images"}]) == "images"


class Hoarder(toy_plugin.Means):
    """Keeps the pixels of all images it was shown in its state."""

    def __init__(self, context):
        super().__init__(context)
        self.pixels = torch.zeros(0, 3, 8, 8, dtype=torch.uint8)

    def learn(self, domain):
        super().learn(domain)
        self.pixels = torch.cat([self.pixels, domain.images().to(torch.uint8)])

    def state_dict(self):
        return {"sums": self.sums, "pixels": self.pixels}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.pixels = state["pixels"]


@pytest.fixture
def hoard(toy_registry, toy_run, monkeypatch):
    """A run of a method that keeps what it may not, or is declared to."""

    def run(**declared):
        info = toy_registry.methods["toy-slow"]
        changed = dataclasses.replace(info, factory=Hoarder, **declared)
        monkeypatch.setitem(toy_registry.methods, "toy-slow", changed)
        return toy_run("toy-slow")

    return run


def test_the_record_of_a_hoarder_says_so(hoard, toy_run):
    record = hoard()
    assert [found["kind"] for found in record.audit] == ["images", "images"]
    assert record.audit[1]["bytes"] == record.audit[1]["limit"] == 3 * 3 * 8 * 8
    assert Record.load(record.folder).audit == record.audit
    assert toy_run("toy-means").audit == []


def test_a_method_that_may_keep_images_is_not_audited(hoard):
    record = hoard(exemplar_free=False)
    assert record.audit is None
    assert "audit" not in json.loads(record.to_json())


def test_boards_and_tables_show_it_only_where_it_is(hoard, toy_run, tmp_path):
    toy_run("toy-means")
    toy_run("toy-router")
    write_leaderboards(find_records(tmp_path / "runs"), tmp_path / "without")
    page = next((tmp_path / "without").glob("toy-1shot*.md")).read_text()
    assert not any(mark in page for mark in "†‡")
    assert "audit" not in next((tmp_path / "without").glob("toy-1shot*.csv")).read_text()

    record = hoard()
    records = find_records(tmp_path / "runs")
    small = [
        dataclasses.replace(r, audit=[{"kind": "features"}])
        if r.spec["method"] == "toy-router"
        else r
        for r in records
    ]
    write_leaderboards(small, tmp_path / "with")
    table = pd.read_csv(next((tmp_path / "with").glob("toy-1shot*.csv")), keep_default_na=False)
    expected = {"toy-slow": "images", "toy-router": "features", "toy-means": ""}
    assert table.set_index("method")["audit"].to_dict() == expected
    lines = next((tmp_path / "with").glob("toy-1shot*.md")).read_text().splitlines()
    marked = {line.split()[1]: line for line in lines if "†" in line or "‡" in line}
    assert "†" in marked["toy-slow"]
    assert "‡" in marked["toy-router"]
    assert "toy-means" not in marked
    assert sum(line.startswith(("†", "‡")) for line in lines) == 2

    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(tables.cost(record))
    assert "could hold all training images seen so far" in capture.get()


def test_old_records_have_neither_field(toy_run):
    record = toy_run()
    values = json.loads(record.to_json())
    for name in ("served", "audit", "content_sha256"):
        del values[name]
    (record.folder / "record.json").write_text(json.dumps(values))
    old = Record.load(record.folder)
    assert (old.served, old.audit, old.sealed) == (None, None, False)
    assert json.loads(old.to_json()) == values
