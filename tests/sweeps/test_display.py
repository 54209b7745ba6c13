"""What a user sees of a sweep on its way."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from sweep_fakes import make_cell

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.sweeps.display import Lines, Live, time_left
from fsdil_bench.sweeps.estimate import Costs, say_seconds
from fsdil_bench.sweeps.scheduler import Status

ONE = ScenarioId("toy", 1)


def statuses(*names):
    return [Status(make_cell(Path("/x"), n), name) for n, name in enumerate(names)]


def test_time_left_counts_what_is_not_over():
    costs = Costs()
    board = statuses("done", "running", "waiting", "failed", "waiting")
    assert time_left(board, costs, 1) is None
    costs.add("m", ONE, 40.0)
    board[1].domains = 1  # of 4
    assert time_left(board, costs, 2) == pytest.approx((0.75 * 40 + 40 + 40) / 2)


def test_costs_of_the_same_shots_come_first():
    costs = Costs()
    costs.add("m", ScenarioId("toy", 4), 100.0)
    assert costs.seconds("m", ONE) == 100
    for seconds in (1.0, 2.0, 30.0):
        costs.add("m", ONE, seconds)
    assert costs.seconds("m", ONE) == 2
    assert costs.seconds("n", ONE) is None


def test_lines_say_what_is_new():
    said = []
    lines = Lines(2, said.append)
    first, second = statuses("done", "waiting")
    first.found = True
    lines.changed(first)
    second.name = "queued"
    lines.changed(second)
    assert said == []
    second.name, second.attempt = "running", 1
    lines.changed(second)
    second.name, second.reason = "waiting", "it was killed"
    lines.changed(second)
    second.name, second.seconds, second.attempt = "done", 75.0, 2
    lines.changed(second)
    assert said == [
        "[1/2] m on toy-1shot, seed 1: running",
        "[1/2] m on toy-1shot, seed 1: to be tried again: it was killed",
        "[2/2] m on toy-1shot, seed 1, attempt 2: done (1 min)",
    ]


def test_the_table_shows_what_is_on_its_way():
    console = Console(width=120, file=io.StringIO())
    live = Live(4, console, Costs(), 2)
    board = statuses("done", "running", "elsewhere", "waiting")
    board[1].phase, board[1].domains = "domain 3: testing 40 %", 2
    console.print(live.table(board))
    text = console.file.getvalue()
    assert "domain 3: testing 40 %" in text
    assert "2/4" in text
    assert "1 done, 1 running, 1 elsewhere, 1 waiting" in text
    assert "left: unknown" in text
    assert "seed 0" not in text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "unknown"), (3, "3 s"), (90, "2 min"), (7260, "2 h 01 min"), (200000, "2.3 days")],
)
def test_durations_are_said_in_words(seconds, said):
    assert say_seconds(seconds) == said
