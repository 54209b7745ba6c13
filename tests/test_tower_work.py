"""A CVLC run does hardly more work than there is to do; what it is compared with is right, too."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fsdil_methods.cvlc.method import CVLC

ROOT = Path(__file__).parent.parent


@pytest.fixture
def work(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import tower_work

    yield tower_work
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        del sys.modules[name]


@pytest.fixture
def small(work):
    return work.Shape("cddb-hard", 2, 1_024, (60, 40), shots=2)


QUICK = {"least_views": 8, "batch_size": 16, "base_epochs": 1, "epochs": 2}


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_every_phase_is_close_to_the_limit(work, small):
    found = {row.phase: row for row in work.rows(small, **QUICK)}
    assert list(found) == [*work.PHASES, "total"]
    for row in found.values():
        assert 1 <= row.ratio <= 1.15, row
        assert row.plain >= row.ours, row
    assert found["texts"].plain > 10 * found["texts"].ours
    assert found["evaluation"].plain > 1.5 * found["evaluation"].ours


def test_passes_of_a_run(work, small):
    """Numbers that follow from the data set alone."""
    counted = work.count_run(small, **QUICK)
    assert counted.in_phase("base training") == {"trained": 1_024}
    assert counted.in_phase("few-shot training") == {"trained": 2 * 4}
    # Four passes over four augmented images and the plain ones, before and after training.
    assert counted.in_phase("views and statistics")["image"] == 1_024 + 2 * (4 + 16)
    assert counted.in_phase("texts")["names, trained"] == 1_024 // 16 + 2
    evaluated = counted.in_phase("evaluation")
    assert evaluated["first"] == 60 + 100
    assert evaluated["first"] <= evaluated["rest"] <= 2 * evaluated["first"]


def test_work_that_is_done_twice_shows(work, small, monkeypatch):
    """Without what domains share, images that were routed wrongly begin with the pixels again."""
    monkeypatch.setattr(CVLC, "shared_part", lambda self, batch: None)
    counted = work.count_run(small, **QUICK | {"batch_size": 256})
    assert counted.least["evaluation", "first"] == 60 + 100 < counted.passes["evaluation", "first"]


@pytest.mark.parametrize("method", ["finetune", "dualprompt", "l2p", "inflora"])
def test_other_methods_encode_each_view_once(work, method):
    shape = work.Shape("cddb-hard", 2, 64, (60, 40, 30), shots=2)
    _, passes, distinct = work.image_passes(work.count_run(shape, method, base_epochs=1, steps=2))
    padding = 32 * (2 * len(shape.tests))
    assert 0 < distinct <= passes <= distinct + padding


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
@pytest.mark.parametrize(("dataset", "most"), [("core50", 3e9), ("domainnet", 4e9)])
def test_a_training_step_with_checkpoints_keeps_little(work, dataset, most):
    from benchmarks.tower_costs import Costs

    costs = Costs(dataset)
    kept = costs.kept("checkpoints")
    # The input of every block, of every image: less cannot be kept.
    inputs = costs.ours.config.batch_size * 12 * 197 * 768 * 4
    assert inputs <= kept < most
    assert costs.kept("ours") > 10 * kept


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_the_tables_of_the_page(work, capsys):
    """docs/cvlc.md shows what the benchmark counts (DomainNet takes minutes: not counted here)."""
    page = (ROOT / "docs" / "cvlc.md").read_text(encoding="utf-8")
    for shape in work.SHAPES[:2]:
        found = work.rows(shape)
        assert all(row.ratio <= 1.15 for row in found)
        work.report(shape.name, found)
    work.report_memory(work.SHAPES)
    lines = re.findall(r"^\| .*\|$", capsys.readouterr().out, re.MULTILINE)
    assert len(lines) == 18
    for line in lines:
        assert line in page
