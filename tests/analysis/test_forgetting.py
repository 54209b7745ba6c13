"""Forgetting, against its definition written out in loops, and against FA*."""

from __future__ import annotations

import numpy as np
import pytest

from fsdil_bench.analysis.forgetting import Forgetting, forgetting, forgetting_curve
from fsdil_bench.records.metrics import scores


def matrix(size, seed=0):
    values = np.random.default_rng(seed).uniform(0, 100, (size, size))
    return [list(row[: t + 1]) for t, row in enumerate(values)]


@pytest.mark.parametrize("size", [2, 3, 6])
def test_it_is_what_its_definition_says(size):
    a = matrix(size)
    curve = []
    for t in range(1, size):
        losses = 0.0
        for i in range(t):
            losses += a[i][i] - a[t][i]
        curve.append(losses / t)
    assert forgetting_curve(a) == pytest.approx(curve)
    found = forgetting(a)
    assert found.lost == pytest.approx(curve[-1])
    assert found.learned == pytest.approx(np.mean([a[i][i] for i in range(size - 1)]))
    assert found.end == pytest.approx(np.mean(a[-1][:-1]))


def test_by_hand():
    assert forgetting([[90], [80, 70], [60, 50, 40]]) == Forgetting(80, 55)
    assert forgetting_curve([[90], [80, 70], [60, 50, 40]]) == [10, 25]


def test_what_nobody_forgets():
    still = [[80], [80, 60], [80, 60, 40]]
    assert forgetting_curve(still) == [0, 0]
    better = [[80], [85, 60], [90, 70, 40]]
    assert forgetting(better).lost == -10  # later domains may help


def test_of_a_single_domain_nothing_can_be_forgotten():
    assert forgetting([[80]]) is None
    assert forgetting_curve([[80]]) == []


def test_with_two_domains_fa_star_is_what_is_left():
    a = matrix(2, seed=3)
    assert forgetting(a).end == pytest.approx(scores(a, [10, 10])["FA*"])
