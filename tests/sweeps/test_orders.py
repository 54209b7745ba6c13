"""Orders of domains in sweeps: which are drawn, what a run is asked for, and what users see."""

from __future__ import annotations

import json
from math import factorial
from pathlib import Path

import pytest
from sweep_processes import TOY

from fsdil_bench import Record
from fsdil_bench.data.domain_orders import draw_orders
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.lookup import Lookup
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.sweeps.orders import with_order
from fsdil_bench.sweeps.plan import make_plan
from fsdil_bench.sweeps.request import OrderNumber, Selection, SweepRun
from fsdil_bench.sweeps.sweep_file import read_sweep

NAMES = ("real", "painting", "clipart", "sketch", "quickdraw", "infograph")


@pytest.mark.parametrize("free_base", [False, True])
def test_orders_do_not_depend_on_how_many_are_drawn(free_base):
    many = draw_orders(NAMES, 100, free_base=free_base)
    assert many[0] == NAMES
    assert len(set(many)) == 100
    assert all(sorted(order) == sorted(NAMES) for order in many)
    assert {order[0] for order in many} == ({*NAMES} if free_base else {"real"})
    for number in (1, 5, 37):
        assert draw_orders(NAMES, number, free_base=free_base) == many[:number]


def test_orders_are_the_same_on_every_machine():
    assert draw_orders(NAMES, 3)[1:] == [
        ("real", "painting", "sketch", "infograph", "quickdraw", "clipart"),
        ("real", "quickdraw", "clipart", "painting", "sketch", "infograph"),
    ]


def test_every_order_is_as_probable_as_any_other():
    """Each domain comes to each place about as often: within four standard errors."""
    orders = draw_orders([f"d{i}" for i in range(9)], 4000, free_base=True)
    for place in range(9):
        for name in orders[0]:
            share = sum(order[place] == name for order in orders) / len(orders)
            assert abs(share - 1 / 9) < 4 * (1 / 9 * 8 / 9 / 4000) ** 0.5


@pytest.mark.parametrize(("domains", "free_base"), [(4, False), (4, True), (1, True), (1, False)])
def test_all_orders_can_be_drawn_and_no_more(domains, free_base):
    names = NAMES[:domains]
    possible = factorial(domains if free_base else domains - 1)
    assert len(set(draw_orders(names, possible, free_base=free_base))) == possible
    with pytest.raises(RequestError) as caught:
        draw_orders(names, possible + 1, free_base=free_base)
    assert f"have {possible} with" in caught.value.message
    assert ("--free-base" in caught.value.remedy) == (not free_base and domains > 1)


@pytest.fixture(scope="module")
def registry():
    return load_registry([TOY])


GRID = 'methods = ["toy-means"]\nscenarios = ["toy-1shot"]\nseeds = "0-1"\n'


@pytest.fixture
def plan(tmp_path, registry):
    def call(text, **selection):
        path = tmp_path / "some.toml"
        path.write_text(f"out = '{tmp_path / 'runs'}'\n{text}")
        return make_plan(read_sweep(path, registry, Selection(**selection)), registry)

    return call


def orders(plan):
    assert not plan.blocked
    return {(cell.order_number, cell.request.order) for cell in plan.cells}


def test_every_run_has_its_explicit_order(plan):
    (own,) = {cell.domains for cell in plan(GRID).cells}
    assert orders(plan(GRID)) == {(None, ())}
    found = plan(GRID + "orders = 2")
    assert len(found.cells) == 4
    listed = dict(orders(found))
    assert len(listed[0]) == own
    assert listed[1] != listed[0]
    assert listed[1][0] == listed[0][0]
    # The first order is the scenario's own: the same runs as without orders.
    assert {cell.key for cell in plan(GRID).cells} < {cell.key for cell in found.cells}


def test_orders_of_a_selection_of_domains_and_with_another_base(plan):
    names = dict(orders(plan(GRID + "orders = 1")))[0]
    text = f"[[grid]]\n{GRID}order = {json.dumps(names[:2])}\n"
    chosen = plan(text + f'base = "{names[1]}"\norders = 1')
    assert orders(chosen) == {(0, (names[1], names[0]))}
    free = plan(text + "orders = 2\nfree_base = true")
    assert orders(free) == {(0, names[:2]), (1, names[1::-1])}


def test_each_grid_has_its_own_orders_and_flags_win(plan):
    names = dict(orders(plan(GRID + "orders = 1")))[0]
    listed = f"orders = {json.dumps([names[::-1], names])}"
    text = f"[[grid]]\n{GRID}orders = 1\n[[grid]]\n{GRID}{listed}\n"
    assert orders(plan(text)) == {(0, names), (0, names[::-1])}
    assert orders(plan(text, orders=2)) == orders(plan(GRID + "orders = 2"))


def test_orders_in_python(registry):
    asked = Selection(("ncm",), ("drawn-1shot",), seeds=(0, 1), orders=3, free_base=True)
    runs = read_sweep(None, registry, asked).runs
    assert [run.order for run in runs[:3]] == [OrderNumber(n, 3, True) for n in range(3)]
    assert str(runs[1]) == "ncm on drawn-1shot, seed 0, order 1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders = 0", ["orders = 0 does not fit", "orders = 5"]),
        ("orders = true", ["orders = True does not fit"]),
        ("orders = 'x'", ["orders = 'x' does not fit"]),
        ("orders = []", ["orders is empty"]),
        ("orders = [3]", ["orders: 3 does not fit"]),
        ("orders = [[]]", ["orders: [] does not fit"]),
        ("orders = [['a'], [1]]", ["orders: [1] does not fit"]),
        ("orders = 20000", ["20,000 values", "at most 10,000"]),
        ("orders = 2\nfree_base = 'x'", ["free_base = 'x'", "true or false"]),
        ("free_base = true", ["no effect without orders"]),
        ("orders = [['a']]\nbase = 'a'", ["exclude each other"]),
        ("orders = [['nowhere']]", ["unknown domain of toy", "'nowhere'"]),
        ("orders = 1000", ["1000 orders are asked for", "--free-base"]),
    ],
)
def test_wrong_orders(plan, text, expected):
    with pytest.raises(RequestError) as caught:
        plan("[[grid]]\n" + GRID + text)
    for part in expected:
        assert part in str(caught.value)


def test_validation_has_no_orders(plan):
    with pytest.raises(RequestError, match="made from the base domain alone"):
        plan(GRID.replace("toy-1shot", "toy-1shot@validation") + "orders = 2")


def test_validation_with_domains_of_its_own_has_orders():
    lookup = Lookup(load_registry())
    request = RunRequest.of(method="ncm", scenario="forged-1shot@validation")
    drawn = [
        with_order(SweepRun(request, order=OrderNumber(number, 2)), lookup).request.order
        for number in range(2)
    ]
    assert drawn == [("weaver", "etcher", "printer"), ("weaver", "printer", "etcher")]


def test_missing_data_blocks_runs_with_orders_too(plan, monkeypatch):
    monkeypatch.delenv("FSDIL_DATA", raising=False)
    text = GRID.replace("toy-1shot", "cddb-hard-1shot") + "orders = 2\ndata = '/nowhere'"
    found = plan(f"[[grid]]\n{text}")
    assert (len(found.cells), len(found.blocked)) == (0, 4)


def test_a_sweep_over_orders_shows_them_and_the_spread(call):
    cells = ["sweep", "--plugin", TOY, "--threads", 1, "-m", "toy-means", "-s", "toy-1shot"]
    cells += ["--orders", 2, "--seeds", "0-1"]
    code, out, _ = call(*cells, "--dry-run", "--on=records")
    assert code == 0
    assert "order 1 of toy: " in out
    code, out, err = call(*cells)
    assert code == 0, err
    assert "toy-means on toy-1shot, seed 1, order 1: done" in err
    assert "over 2 orders" in out
    records = [Record.load(path) for path in Path("runs/toy-1shot/toy-means").iterdir()]
    assert len({tuple(record.spec["order"]) for record in records}) == 2
    for record in records:
        assert f"--order {','.join(record.spec['order'])}" in record.provenance["command"]
