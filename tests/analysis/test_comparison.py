from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import studentized_range

from fsdil_bench import find_records
from fsdil_bench.analysis.comparison import compare
from fsdil_bench.analysis.grouping import boards_to_rank
from fsdil_bench.errors import RequestError

PUBLISHED = Path(__file__).parents[2] / "leaderboards" / "records"
ONE_SHOT = PUBLISHED / "drawn-1shot"


@pytest.fixture(scope="module")
def router():
    return find_records(ONE_SHOT / "fused-prototypes")


@pytest.fixture(scope="module")
def slda():
    return find_records(ONE_SHOT / "slda")


def test_scores_and_domains_are_those_of_the_records(router, slda):
    found = compare(router, slda, "Last")
    assert found.overall.metric == "Last"
    for row in found.scores:
        assert row.a == pytest.approx(np.mean([r.metrics[row.name] for r in router]))
        assert row.difference == pytest.approx(row.a - row.b)
    for i, row in enumerate(found.domains):
        assert row.b == pytest.approx(np.mean([r.matrix[-1][i] for r in slda]))
        assert row.difference == pytest.approx(row.a - row.b)
        assert row.interval.low < row.difference < row.interval.high
    assert found.domains[0].name == "real"


def test_the_images_that_decide(router, slda):
    found = compare(router, slda).disagreements
    (all_,) = found["overall"]
    only = []
    for a, b in zip(router, slda, strict=True):
        ours, theirs = a.predictions(), b.predictions()
        right, other = (each["classes_5"] == each["labels"] for each in (ours, theirs))
        only.append([(right & ~other).sum(), (~right & other).sum()])
    assert (all_.only_a, all_.only_b) == pytest.approx(tuple(np.mean(only, axis=0)))
    assert sum(row.only_a for row in found["domains"]) == pytest.approx(all_.only_a)
    assert sum(row.images for row in found["domains"]) == all_.images == 2880
    balance = [abs(row.only_a - row.only_b) for row in found["classes"]]
    assert len(balance) == 5
    assert balance == sorted(balance, reverse=True)


def renamed(records, method, **facts):
    """The records as of another method, of which other things may be known."""
    return [
        dataclasses.replace(
            record,
            run_id=f"{method} {record.run_id}",
            spec=record.spec | {"method": method},
            method=record.method | facts,
        )
        for record in records
    ]


def test_routing_only_where_both_route(router, slda):
    assert compare(router, slda).routing is None
    found = compare(router, renamed(router, "another router")).routing
    assert found["a"] == pytest.approx(np.mean([record.routing[-1] for record in router]))
    assert found["alike"] == 100


def test_notes_say_what_else_differs(router, slda):
    joint = [r for r in renamed(slda, "joint", exemplar_free=False) if r.spec["seed"] < 2]
    notes = " ".join(compare(router, joint).notes)
    assert "fused-prototypes seed 2" in notes
    assert "joint keeps old images" in notes
    more = find_records(PUBLISHED / "drawn-4shot" / "slda")
    assert any("drawn-4shot" in note for note in compare(slda, more).notes)
    assert compare(slda, more).overall.a == "slda on drawn-1shot"
    assert compare(router[:1], slda[1:]).notes == [
        "They share no seed: the draws of training images differ between the two."
    ]
    assert compare(router, slda).notes == []


def test_compare_methods(call, tmp_path):
    options = (PUBLISHED, "--scenario", "drawn-1shot", "--plot", "out/difference.svg")
    code, out, err = call("compare", "zero-shot", "hycal", *options)
    assert code == 0, err
    for expected in ("95% interval", "sketch", "images that decide it", "state (KB)", "Cohen's g",
                     "zero-shot is better than hycal by"):  # fmt: skip
        assert expected in out
    assert "AA*" in (tmp_path / "out" / "difference.svg").read_text()


def test_compare_as_json(call):
    code, out, err = call("compare", ONE_SHOT / "fused-prototypes", ONE_SHOT / "slda", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["overall"]["seeds"] == [0, 1, 2]
    assert found["overall"]["interval"]["level"] == 0.95
    assert len(found["domains"]) == 6
    again = call("compare", ONE_SHOT / "fused-prototypes", ONE_SHOT / "slda", "--json")[1]
    assert again == out


def test_one_seed_is_said(call, tmp_path):
    for method in ("fused-prototypes", "slda"):
        folder = next((ONE_SHOT / method).glob("seed0-*"))
        shutil.copytree(folder, tmp_path / "runs" / method)
    code, out, err = call("compare", "fused-prototypes", "slda")  # without RUNS: those below ./runs
    assert code == 0, err
    assert "test images only: one seed" in out
    assert "is not known" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fused-prototypes", "slda", PUBLISHED), "several scenarios: drawn-1shot, drawn-4shot"),
        (("fused-prototype", "slda", ONE_SHOT), "Did you mean 'fused-prototypes'?"),
        (
            ("fused-prototypes", "slda", ONE_SHOT, "--scenario", "drawn-8shot"),
            "no run of drawn-8shot",
        ),
        (("fused-prototypes", ONE_SHOT, ONE_SHOT), "several methods"),
        (("fused-prototypes", "slda"), "no runs"),
        (("fused-prototypes", "slda", "nowhere"), "'nowhere' does not exist"),
        (
            ("fused-prototypes", "slda", ONE_SHOT, "--plot", "figure.docx"),
            "Let it end in .pdf, .png, .svg",
        ),
    ],
)
def test_what_cannot_be_compared(call, arguments, message):
    code, _, err = call("compare", *arguments)
    assert code == 2 or "does not exist" in err
    assert message in err
    assert "Traceback" not in err


def rewrite(record, **values):
    """Change fields of a record on disk."""
    changed = dataclasses.replace(record, **values)
    (record.folder / "record.json").write_text(changed.to_json())


def test_of_an_ordinary_and_a_sealed_run_the_sealed_one_counts(call, made, tmp_path):
    runs = tmp_path / "runs"
    sealed = made.make_record(runs, "one", level=0.6, sealed=True)
    ordinary = made.make_record(runs, "one", level=0.99)
    rewrite(ordinary, run_id=sealed.run_id)
    made.make_record(runs, "other", level=0.7)
    code, out, err = call("compare", "one", "other", "--json")
    assert code == 0, err
    assert json.loads(out)["scores"][0]["a"] == pytest.approx(sealed.metrics["AA*"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"order": [f"domain {t}" for t in (0, 2, 1, 3)]}, "differ in domains: ['domain 0', "),
        ({"config": {"lr": 2}}, "differ in options: lr"),
        ({}, "differ in code of the method"),
    ],
)
def test_two_runs_of_one_seed_say_what_differs(call, made, tmp_path, change, words):
    for level in (0.6, 0.7):
        record = made.make_record(tmp_path / "runs", "one", level=level)
    made.make_record(tmp_path / "runs", "other")
    order = change.get("order", record.spec["order"])
    domains = [record.scenario["domains"][int(name[-1])] for name in order]
    code = record.method["code"] | ({} if change else {"method": "f" * 16})
    rewrite(
        record,
        spec=record.spec | change,
        scenario=record.scenario | {"domains": domains},
        method=record.method | {"code": code},
    )
    code, _, err = call("compare", "one", "other")
    assert code == 2
    assert words in err


def test_rank(call, tmp_path):
    code, out, err = call("rank", PUBLISHED, "--plot", tmp_path / "ranks.svg")
    assert code == 0, err
    out = " ".join(out.split())  # names may fill several lines
    scenarios = sorted(path.name for path in PUBLISHED.iterdir())
    assert f"on {len(scenarios)} boards: drawn-1shot, tiny-clip;" in out
    assert "ranpac" in (tmp_path / "ranks.svg").read_text()
    found = json.loads(call("rank", PUBLISHED, "--json")[1])
    assert [board["scenario"] for board in found["boards"]] == scenarios
    assert list(found["ranks"].values()) == sorted(found["ranks"].values())
    boards = [{path.name for path in board.iterdir()} for board in PUBLISHED.iterdir()]
    everywhere, somewhere = set.intersection(*boards), set.union(*boards)
    assert set(found["ranks"]) == everywhere
    lacking = ", ".join(sorted(somewhere - everywhere))
    assert not lacking or f"Left out, because some board has no run of them: {lacking}." in out
    k = len(everywhere)
    expected = studentized_range.ppf(0.95, k, np.inf) * np.sqrt(k * (k + 1) / (12 * len(boards)))
    assert found["critical_difference"] == pytest.approx(expected, rel=1e-3)
    assert f"more than {expected:.2f} apart (Nemenyi)" in out


def test_rank_of_one_board(call):
    code, out, err = call("rank", ONE_SHOT)
    assert code == 0, err
    assert "nothing to average" in out


def test_boards_hold_only_what_compares(router, slda):
    other = dataclasses.replace(router[0], run_id="other", spec=router[0].spec | {"config": {}})
    (board,) = boards_to_rank([*router, *router, *slda, other]).values()
    assert sorted(map(len, board.values())) == [1, 3, 3]
    assert sum(label.startswith("fused-prototypes [") for label in board) == 2
    half = dataclasses.replace(other, spec=router[0].spec | {"precision": "bf16"})
    with pytest.raises(RequestError, match="differ in precision: bf16 and fp32"):
        boards_to_rank([*router, half])
    weights = dataclasses.replace(other, method=other.method | {"weights": "others"})
    with pytest.raises(RequestError, match="differ in weights of the backbone"):
        boards_to_rank([*router, weights])
