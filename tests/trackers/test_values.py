"""Names and numbers that trackers log."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fsdil_bench.runs.finished_domain import of_record
from fsdil_bench.runs.tracker import TrackedRun
from fsdil_bench.trackers import values

ODD = ("a/b", "a?b", "naïve", "", "..", "x y")


@pytest.fixture
def domains(toy_run):
    return list(of_record(toy_run()))


def test_every_name_fits_every_tracker(domains):
    for names in (ODD[:4], ODD[2:]):
        odd = replace(
            domains[-1], domains=names, unseen=dict.fromkeys(ODD, 1.0), diagnostics={"é*": 1.5}
        )
        for name in values.domain_values(odd):
            assert re.fullmatch(r"[\w. /-]+", name, re.ASCII), name
            assert not re.search(r"//|/\.{1,2}(/|$)|^/|/$", name), name
    several = {values.numbered(i, name) for i, name in enumerate(ODD)}
    assert len(several) == len(ODD)


def test_two_domains_of_one_name_are_two(domains):
    twice = replace(domains[1], domains=("d", "d", "d", "d"))
    logged = values.domain_values(twice)
    assert (logged["accuracy/1-d"], logged["accuracy/2-d"]) == domains[1].matrix[-1]


def test_forgetting_is_what_old_domains_lost(domains):
    rows = ((80.0,), (70.0, 90.0), (50.0, 85.0, 60.0))
    logged = values.domain_values(replace(domains[2], matrix=rows))
    assert logged["seen/forgetting"] == pytest.approx((80 - 50 + 90 - 85) / 2)
    assert "seen/forgetting" not in values.domain_values(domains[0])


def test_settings_are_flat(tmp_path):
    spec = {
        "method": "m", "scenario": "s-1shot", "seed": 0, "base_limit": None,
        "order": ["a", "b"], "config": {"lr": 0.1, "deep": {"on": True}, "odd": [[1], [2]]},
    }  # fmt: skip
    run = TrackedRun("1f", True, "s-1shot/m/seed0-1f-sealed", spec, {}, ("a", "b"), tmp_path)
    assert values.settings(run) == {
        "method": "m", "scenario": "s-1shot", "seed": 0, "base_limit": "none", "order": "a,b",
        "config.lr": 0.1, "config.deep.on": True, "config.odd": "[[1], [2]]",
    }  # fmt: skip
    assert run.unique_id == "1f-sealed"
    assert values.record_name(run) == "record-1f-sealed.json"
    assert run.title == "m s-1shot seed 0 sealed"


def test_only_numbers_of_diagnostics_are_logged(domains):
    said = {"loss": 0.25, "deep": {"steps": 3}, "ok": True, "text": "x", "many": [1, 2]}
    logged = values.domain_values(replace(domains[0], diagnostics=said))
    assert logged["diagnostics/loss"] == 0.25
    assert logged["diagnostics/deep.steps"] == 3
    assert len([name for name in logged if name.startswith("diagnostics/")]) == 2
