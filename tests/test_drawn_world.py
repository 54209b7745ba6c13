"""The main job on the embedded world: every built-in method, end to end."""

from __future__ import annotations

import pytest

import fsdil_bench
from fsdil_bench.plugins.registry import load_registry

FROZEN = ["zero-shot", "ncm", "ncm-text", "slda", "ranpac", "linear-probe"]


@pytest.fixture(scope="module")
def runs(drawn_cache, tmp_path_factory):
    """Run a method on the drawn world; what is done is shared by all tests of this module."""
    out = tmp_path_factory.mktemp("runs")

    def run(method, scenario="drawn-1shot", **options):
        return fsdil_bench.run(method, scenario, out=out, **options)  # not repeated once done

    return run


def test_zero_shot_profile_leaves_something_to_learn(runs):
    """At home in the base style, above chance and far from perfect in the far ones."""
    record = runs("zero-shot")
    by_name = dict(zip(record.spec["order"], record.matrix[-1], strict=True))
    assert 75 <= by_name["real"] <= 90
    for far in ("sketch", "quickdraw"):
        assert 100 / 24 * 1.5 < by_name[far] < 60


@pytest.mark.parametrize("method", FROZEN)
def test_frozen_methods_are_well_above_chance(runs, method):
    record = runs(method)
    assert record.metrics["AA*"] > 30
    assert record.scenario["digest"] == runs("zero-shot").scenario["digest"]


def test_a_static_method_forgets_nothing(runs):
    matrix = runs("zero-shot").matrix
    for t, row in enumerate(matrix):
        assert row == matrix[-1][: t + 1]


def test_shots_help_where_the_backbone_is_weak(runs):
    few, many = runs("ncm", "drawn-1shot"), runs("ncm", "drawn-8shot", config={"mode": "balanced"})
    assert many.matrix[4][4] > few.matrix[4][4]


def test_warm_cache_computes_no_feature(runs):
    runs("ncm")
    assert "features" not in runs("slda", "drawn-1shot").cost["images"]


def test_a_sealed_run_is_the_same(runs):
    ordinary, sealed = runs("ncm-text"), runs("ncm-text", sealed=True)
    assert sealed.run_id == ordinary.run_id
    assert sealed.predictions_sha256 == ordinary.predictions_sha256
    assert sealed.provenance["ordinary_run"] == "same predictions"


def test_the_audit_is_about_size(runs):
    """A random projection outweighs the base images; class means do not."""
    assert [found["kind"] for found in runs("ranpac").audit] == ["images"]
    assert runs("ncm").audit == []


def test_every_method_is_listed_with_a_summary():
    for name, info in load_registry().methods.items():
        assert name == info.name
        assert len(info.summary) > 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("method", ["finetune", "base-only", "joint"])
def test_tower_methods(runs, method):
    record = runs(method)
    assert record.metrics["AA*"] > 30
    assert record.cost["trained_parameters"][0] > 1_000_000
