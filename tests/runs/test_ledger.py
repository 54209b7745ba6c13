"""The ledger: what views hand out is counted, and more than K images of a class is no result."""

from __future__ import annotations

import json

import numpy as np
import pytest
import toy_plugin

import fsdil_bench.data.streams
from fsdil_bench import Record, TrainDomain
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import DataError
from fsdil_bench.progress import Progress
from fsdil_bench.runs.ledger import Ledger
from fsdil_bench.runs.pictures import Pictures

LABELS = np.array([0, 0, 1, 1, 2, 2])


def test_a_record_tells_what_was_handed_out(toy_run):
    record = toy_run(scenario="toy-2shot")  # class means: the features of every image, once
    assert record.served == [
        {"images": 36, "distinct": 36, "per_class": 12, "times": 36},
        *[{"images": 6, "distinct": 6, "per_class": 2, "times": 6}] * 3,
    ]
    assert Record.load(record.folder).served == record.served


def test_every_way_to_see_an_image_counts(tmp_path):
    backbone, stream = toy_plugin.build_backbone(), toy_plugin.build_stream()
    transform = build_transform("clip", backbone.image)
    pictures = Pictures(stream, backbone, transform, tmp_path, Progress())
    ledger = Ledger()
    domain = TrainDomain(
        0, stream.domains[0].train, stream.class_names, pictures, (0, 0), Progress(), None, ledger
    )
    assert ledger.summary(0, 36) == {"images": 36, "distinct": 0, "per_class": 0, "times": 0}
    first = next(domain.batches(4, shuffle=False))
    assert first.positions.tolist() == [0, 1, 2, 3]
    assert ledger.summary(0, 36) == {"images": 36, "distinct": 4, "per_class": 4, "times": 4}
    list(domain.batches(10, epochs=2))
    assert ledger.summary(0, 36)["times"] == 4 + 72
    domain.features()
    domain.images()
    assert ledger.summary(0, 36) == {"images": 36, "distinct": 36, "per_class": 12, "times": 148}


def test_earlier_domains_are_counted_separately():
    ledger = Ledger()
    ledger.note(0, LABELS, [0, 0, 5])
    ledger.note(1, LABELS[:2])
    summary = ledger.summary(1, 2)
    assert (summary["distinct"], summary["times"]) == (2, 2)
    assert summary["earlier"] == {"distinct": 2, "times": 3}


def test_only_later_domains_are_limited_and_only_by_distinct_images():
    names = ("a", "b", "c")
    ledger = Ledger()
    ledger.note(0, LABELS)
    for _ in range(5):
        ledger.note(1, LABELS, [0, 2, 4])
    ledger.check(1, names)
    ledger.note(1, LABELS, [3])
    with pytest.raises(DataError, match="domain 2 handed out 2 different images of class 'b'"):
        ledger.check(1, names)
    ledger.check(2, names)
    ledger.check(None, names)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_stream_that_holds_too_much_fails_the_run(toy_run, tmp_path, monkeypatch, sealed):
    """Nothing in the harness does this today: the draw is replaced by one that draws nothing."""
    monkeypatch.setattr(fsdil_bench.data.streams, "draw_shots", lambda stream, *_: stream)
    message = "domain 2 handed out 12 different images of class 'red' in a run on 1 shot"
    with pytest.raises(DataError, match=message):
        toy_run(sealed=sealed)
    assert not list((tmp_path / "runs").rglob("record.json"))


def test_a_domain_learned_by_an_older_version_leaves_the_field_out(toy_run):
    record = toy_run()
    (record.folder / "record.json").unlink()
    result = record.folder / "domain-0" / "result.json"
    values = json.loads(result.read_text())
    del values["served"]
    result.write_text(json.dumps(values))
    again = toy_run()
    assert again.served is None
    assert "served" not in json.loads(again.to_json())
    assert (again.run_id, again.matrix) == (record.run_id, record.matrix)
