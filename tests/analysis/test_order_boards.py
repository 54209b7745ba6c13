"""Mean and spread over orders of the domains: which runs belong together, and what is computed."""

from __future__ import annotations

import csv
import io
import json
from itertools import count, product

import numpy as np
import pytest

from fsdil_bench.analysis.orders import (
    OrderScore,
    compare_over_orders,
    interval_over_orders,
    make_order_boards,
)
from fsdil_bench.data.domain_orders import draw_orders
from fsdil_bench.records.metrics import METRICS
from fsdil_bench.records.record import Record
from fsdil_bench.report.leaderboards.orders import index_lines, order_files, terminal_table

NAMES = ("real", "sketch", "clipart", "quickdraw", "painting")
_number = count()


def run(method, order, seed, score, *, scenario="drawn-1shot", exemplar_free=True, **spec):
    domains = [{"name": name, "test": 5, "test_sha256": f"test {name}"} for name in order]
    return Record(
        run_id=f"{next(_number):08}",
        spec={
            "method": method, "config": {}, "scenario": scenario, "seed": seed, "backbone": "b",
            "base_limit": None, "order": list(order), "precision": "fp32", "scenario_options": {},
        } | spec,
        scenario={"domains": domains, "classes": ["x", "y"], "transform": {}},
        matrix=[], metrics=dict.fromkeys(METRICS, score), cost={}, provenance={},
        predictions_sha256="",
        method={"weights": "w", "code": {"method": "c"}, "exemplar_free": exemplar_free},
    )  # fmt: skip


def runs(method, orders, scores, **options):
    """A run for every order and seed; `scores` has a line per order."""
    return [
        run(method, order, seed, score, **options)
        for order, line in zip(orders, scores, strict=True)
        for seed, score in enumerate(line)
    ]


ORDERS = draw_orders(NAMES, 3)


def test_mean_and_spread_by_hand():
    (board,) = make_order_boards(runs("m", ORDERS, [[50, 52], [60, 62], [40, 42]]))
    assert (board.base, board.orders) == ("real", tuple(ORDERS))
    (row,) = board.rows
    assert row.seeds == [0, 1]
    found = row.scores["AA*"]
    assert found.means == (51, 61, 41)
    assert found.mean == 51
    assert found.order_std == 10
    assert found.seed_std == pytest.approx(2**0.5)
    assert (found.best, found.worst) == (1, 2)
    # t with two degrees of freedom: 4.3027
    half = 4.302653 * 10 / 3**0.5
    assert found.interval.low == pytest.approx(51 - half)
    assert found.interval.high == pytest.approx(51 + half)
    assert "orders of the domains (3)" in found.interval.covers
    assert OrderScore((99.0, 60.0), None).interval.high == 100


def test_one_order_makes_no_board_and_conditions_are_not_mixed():
    assert make_order_boards(runs("m", ORDERS[:1], [[50, 52]])) == []
    records = runs("m", ORDERS[:1], [[50]]) + runs("m", ORDERS[1:2], [[50]], precision="tf32")
    assert make_order_boards(records) == []
    fewer = [order[:3] for order in ORDERS]  # other domains: other test images
    assert make_order_boards([*runs("m", ORDERS[:1], [[1]]), *runs("m", fewer[:1], [[1]])]) == []
    twice = ("real", "sketch", "sketch")
    assert make_order_boards(runs("m", [twice, twice[::-1]], [[1], [1]])) == []


def test_methods_without_all_orders_or_a_shared_seed_are_left_out():
    records = runs("a", ORDERS, [[50, 52]] * 3) + runs("b", ORDERS[:2], [[50], [50]])
    records += [run("c", order, seed, 40) for seed, order in enumerate(ORDERS)]
    records += runs("stray", [tuple(reversed(NAMES))], [[1]])
    records += [run("d", order, seed, 30) for order, seed in product(ORDERS, (1, 2))]
    records += [run("d", ORDERS[0], 7, 99)]
    (board,) = make_order_boards(records)
    assert board.base == "real"
    assert [row.label for row in board.rows] == ["a", "d"]
    assert board.left_out["b"] == "has 2 of 3 orders"
    assert board.left_out["c"] == "has no seed in all orders"
    assert board.rows[1].seeds == [1, 2]  # seed 7 exists in one order alone
    assert board.rows[1].scores["AA*"].mean == 30
    found = compare_over_orders(*board.rows)
    assert found.mean == 22  # on the seed that both have


def test_a_free_and_a_fixed_base_are_not_mixed():
    fixed, free = draw_orders(NAMES, 6), draw_orders(NAMES, 6, free_base=True)
    assert len({order[0] for order in free}) > 2
    both = list(dict.fromkeys([*fixed, *free]))
    records = [record for order in both for record in runs("m", [order], [[50, 52]])]
    first, second = make_order_boards(records)
    assert (first.base, list(first.orders)) == ("real", fixed)
    assert (second.base, list(second.orders)) == ("", free)
    (alone,) = make_order_boards([r for r in records if tuple(r.spec["order"]) in free])
    assert (alone.base, list(alone.orders)) == ("", free)


def test_listed_orders_with_several_bases_are_one_board():
    turned = [NAMES[i:] + NAMES[:i] for i in range(5)]
    (board,) = make_order_boards(runs("m", turned, [[50]] * 5))
    assert (board.base, set(board.orders)) == ("", {*turned})


def test_two_methods_are_paired_by_order_and_seed():
    scores = np.array([[50, 52], [60, 66], [40, 42]])
    better = scores + np.array([[3], [3.5], [4]])
    (board,) = make_order_boards(runs("a", ORDERS, better) + runs("b", ORDERS, scores))
    found = compare_over_orders(*board.rows)
    assert found.mean == pytest.approx(3.5)
    assert found.interval.low > 2  # the orders' spread of 10 points cancels out
    assert found.p < 0.01
    same = compare_over_orders(board.rows[0], board.rows[0])
    assert (same.mean, same.p) == (0, 1)


@pytest.mark.parametrize(("order_effect", "noise"), [(3.0, 1.0), (1.0, 3.0), (0.0, 1.0)])
@pytest.mark.parametrize("seed_effect", [0.0, 2.0])
def test_intervals_cover_the_expected_score_over_orders(order_effect, noise, seed_effect):
    """5 orders x 3 seeds, for the seeds at hand: what they share is part of what is estimated."""
    generator = np.random.default_rng(0)
    seeds = seed_effect * generator.normal(size=(4000, 1, 3))
    orders = order_effect * generator.normal(size=(4000, 5, 1))
    scores = 60 + orders + seeds + noise * generator.normal(size=(4000, 5, 3))
    held = 0
    for means, own in zip(scores.mean(2), seeds.mean((1, 2)), strict=True):
        found = interval_over_orders(means.tolist())
        held += found.low <= 60 + own <= found.high
    assert 92 <= 100 * held / 4000 <= 97


def test_files():
    records = runs("a|b", ORDERS, [[50, 52], [60, 62], [40, 42]])
    records += runs("=c", ORDERS, [[49], [50], [39]]) + runs("partly", ORDERS[:2], [[1], [1]])
    records += runs("keeps", ORDERS, [[90], [90], [90]], exemplar_free=False)
    boards = make_order_boards(records)
    files = order_files(boards)
    assert files == order_files(make_order_boards(records[::-1]))
    page = files["orders.md"]
    assert "## drawn-1shot, b, base: real" in page
    assert "real, sketch, clipart, quickdraw, painting" in page
    assert [cell.strip() for cell in page.partition("| a\\|b ")[2].split("|")[1:4]] == [
        "51.00", "± 10.00", "± 1.41",
    ]  # fmt: skip
    assert "1 (61.00)" in page
    assert "keeps \\*" in page
    assert "Left out: partly has 2 of 3 orders." in page
    lines = list(csv.DictReader(io.StringIO(files["orders.csv"])))
    assert len(lines) == 3 * len(METRICS)
    line = next(each for each in lines if each["method"] == "a|b" and each["metric"] == "Last")
    assert (line["mean"], line["std over orders"], line["orders"], line["seeds"]) == (
        "51.0", "10.0", "3", "2",
    )  # fmt: skip
    assert line["best order"] == ",".join(ORDERS[1])
    assert "'=c" in {each["method"] for each in lines}
    (board,) = json.loads(files["orders.json"])["boards"]
    assert board["orders"] == [list(order) for order in ORDERS]
    assert board["scores"][1]["means"] == [51, 61, 41]
    assert len(board["scores"][1]["run_ids"][0]) == 2
    assert "a\\|b" in index_lines(boards)
    assert terminal_table(boards[0]).row_count == 3
    assert (order_files([]), index_lines([])) == ({}, "")
