"""A changed function of the harness is named."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from unittest.mock import Mock

import pytest

from fsdil_bench.plugins.harness_guard import changed, snapshot
from fsdil_bench.records import metrics
from fsdil_bench.runs import evaluation, loop


@pytest.fixture
def before(guarded):
    """What has changed since the test began."""
    return lambda: set(changed(snapshot()))


def test_nothing_changes_by_itself(before):
    assert before() == set()


def test_what_is_replaced_is_named(before, monkeypatch):
    monkeypatch.setattr(loop.Loop, "_learn", lambda *_: None)
    monkeypatch.setattr(evaluation, "accuracy_row", lambda *_: [100.0])  # imported there
    monkeypatch.setattr(evaluation, "_TEST_BATCH", 3)
    monkeypatch.setattr(metrics, "scores", Mock())
    monkeypatch.setattr(evaluation, "len", lambda _: 0, raising=False)
    monkeypatch.setattr(evaluation.Evaluation._order, "__code__", (lambda *_: 0).__code__)
    assert before() == {
        "fsdil_bench.runs.loop.Loop._learn",
        "fsdil_bench.runs.evaluation.accuracy_row",
        "fsdil_bench.runs.evaluation._TEST_BATCH",
        "fsdil_bench.runs.evaluation.len",
        "fsdil_bench.runs.evaluation.Evaluation._order",
        "fsdil_bench.records.metrics.scores",
    }
    monkeypatch.undo()
    assert before() == set()


def test_a_module_that_is_replaced_is_named(before, monkeypatch):
    name = "fsdil_bench.records.metrics"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert before() == {"fsdil_bench.records.metrics"}


def test_modules_imported_later_are_noted_as_they_were():
    code = """
from fsdil_bench.plugins.harness_guard import changed, snapshot
before = snapshot()
import sys
assert "fsdil_bench.records.metrics" not in sys.modules
import fsdil_bench.records.metrics as metrics
assert changed(before) == []
metrics.scores = None
print(changed(before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['fsdil_bench.records.metrics.scores']\n"
