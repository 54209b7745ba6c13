"""The base domain handed on between runs of different K: exact, and said in the record."""

from __future__ import annotations

import pytest

from fsdil_bench import Record
from fsdil_bench.records.record import PREDICTIONS_FILE


@pytest.fixture
def kept(toy_run):
    """A run whose base domain is kept for others."""
    return toy_run(scenario="toy-1shot", reuse_base=True)


def test_another_k_takes_it_over_and_gets_the_same_result(toy_run, kept, tmp_path):
    plain = toy_run(scenario="toy-2shot", out=tmp_path / "plain")
    taken = toy_run(scenario="toy-2shot", out=tmp_path / "taken", reuse_base=True)
    assert taken.provenance["base_from"] == kept.run_id
    assert taken.provenance["resumed_after"] == 1
    assert "base_from" not in plain.provenance
    assert "base_from" not in kept.provenance
    assert (taken.run_id, taken.matrix) == (plain.run_id, plain.matrix)
    assert taken.predictions_sha256 == plain.predictions_sha256
    assert (taken.folder / PREDICTIONS_FILE).is_file()


@pytest.mark.parametrize("other", [{"seed": 1}, {"base_limit": 3}])
def test_only_k_may_differ(toy_run, kept, tmp_path, other):
    record = toy_run(scenario="toy-2shot", out=tmp_path / "other", reuse_base=True, **other)
    assert "base_from" not in record.provenance


def test_it_is_not_taken_unless_asked(toy_run, kept, tmp_path):
    record = toy_run(scenario="toy-2shot", out=tmp_path / "other")
    assert "base_from" not in record.provenance
    assert isinstance(record, Record)
