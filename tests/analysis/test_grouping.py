"""Which runs make a row, and which rows make a board: one definition for all commands."""

from __future__ import annotations

import dataclasses
import random

import pytest

from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.analysis.grouping import (
    board_key,
    boards_to_rank,
    conditions_of,
    differences,
    distinct_runs,
    in_complete_rows,
    rows_of_all_boards,
)
from fsdil_bench.errors import RequestError


@pytest.fixture
def make(made, tmp_path):
    return lambda method="some", **options: made.make_record(tmp_path / "runs", method, **options)


def with_spec(record, **spec):
    return dataclasses.replace(record, run_id=f"{spec}", spec=record.spec | spec)


def test_runs_of_a_row_differ_in_the_seed_alone(make):
    seeds = [make(seed=seed) for seed in range(3)]
    newer = dataclasses.replace(
        seeds[0], run_id="newer", method=seeds[0].method | {"code": {"method": "newer"}}
    )
    records = [*seeds, newer, make(config={"lr": 2}), make("other"), make(scenario="made-2shot")]
    random.Random(0).shuffle(records)
    assert sorted(map(len, rows_of_all_boards(records))) == [1, 1, 1, 1, 3]


def test_a_row_is_complete_with_all_seeds_of_its_board(make):
    whole = [make(seed=seed) for seed in range(3)]
    elsewhere = make(scenario="made-2shot", seed=7)
    lacking = [make("other", seed=seed) for seed in (0, 2)]
    records = [lacking[0], *whole, elsewhere, lacking[1]]
    assert in_complete_rows(records) == [*whole, elsewhere]
    assert in_complete_rows([make(seed=0), make("other", seed=1)]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scenario": "made-2shot"}, "scenario: made-1shot and made-2shot"),
        ({"backbone": "other"}, "backbone: made-clip and other"),
        ({"precision": "bf16"}, "precision: fp32 and bf16"),
        ({"base_limit": 2}, "base limit: None and 2"),
        ({"scenario_options": {"a": 1}}, "scenario options: {} and {'a': 1}"),
    ],
)
def test_what_keeps_runs_from_sharing_a_board(make, change, said):
    record = make()
    other = with_spec(record, **change)
    assert board_key(record) != board_key(other)
    assert list(differences(record, other).values()) == [said]
    assert len(make_sheets([record, other])) == (1 if "scenario" in change else 2)


def test_every_condition_of_a_board_has_a_text(make):
    record = make()
    other = dataclasses.replace(
        record,
        spec=record.spec
        | {"order": ["x"], "precision": "bf16", "base_limit": 1, "scenario_options": {"a": 1}},
        method=record.method | {"weights": "others"},
        scenario={"classes": [], "domains": [], "transform": {}},
    )
    assert differences(record, other).keys() == conditions_of(record).keys()
    assert differences(record, record) == {}


def test_a_ranking_names_what_differs(make):
    record = make()
    with pytest.raises(RequestError, match="made-1shot, made-clip differ in precision: "):
        boards_to_rank([record, with_spec(record, precision="bf16")])


def test_of_copies_a_sealed_one_is_kept(make):
    plain = make()
    sealed = dataclasses.replace(plain, sealed=True)
    for records in ([plain, sealed], [sealed, plain]):
        assert [record.sealed for record in distinct_runs(records)] == [True]
