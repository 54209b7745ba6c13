"""Kendall's tau and its exact chances, against SciPy and against all permutations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau

from fsdil_bench.analysis.statistics import rank_agreement


def tau_in_loops(a, b):
    total = 0
    for i in range(len(a)):
        for j in range(i):
            product = (a[i] - a[j]) * (b[i] - b[j])
            total += int(product > 0) - int(product < 0)
    return total / (len(a) * (len(a) - 1) / 2)


@pytest.mark.parametrize("number", [2, 3, 5, 9, 14])
@pytest.mark.parametrize("seed", range(4))
def test_without_ties_it_is_scipys(number, seed):
    generator = np.random.default_rng([number, seed])
    a, b = generator.random((2, number))
    b += seed * a  # more and more alike
    found = rank_agreement(a, b)
    theirs = kendalltau(a, b, method="exact")
    assert found.tau == pytest.approx(theirs.statistic)
    assert found.tau == pytest.approx(tau_in_loops(a, b))
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.number == number


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7])
def test_what_chance_makes_of_it_is_counted(number):
    """All orders are gone through."""
    order = range(number)
    sizes = np.array([abs(tau_in_loops(order, other)) for other in permutations(order)])
    for level in (0.5, 0.9, 0.95):
        limit = min(s for s in sizes if (sizes <= s + 1e-9).mean() >= level)
        assert rank_agreement(order, order, level).limit == pytest.approx(limit)
    turned = [*order][::-1]
    assert rank_agreement(order, turned).tau == -1
    assert rank_agreement(order, turned).p == pytest.approx((sizes > 1 - 1e-9).mean())


def test_few_things_prove_nothing():
    assert not rank_agreement(range(4), range(4)).significant  # 2 of 24 orders are this extreme
    assert rank_agreement(range(5), range(5)).significant  # 2 of 120
    assert rank_agreement(range(4), range(4)).limit == 1


def test_a_tie_proves_no_more_than_the_worse_of_its_two_orders():
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 1.0, 3.0, 3.0, 6.0, 5.0]
    found = rank_agreement(a, b)
    assert found.tau == pytest.approx(tau_in_loops(a, b))
    up, down = (rank_agreement(a, [*b[:3], 3 + step, *b[4:]]) for step in (0.1, -0.1))
    assert up.tau > found.tau > down.tau > 0
    assert up.p < found.p == down.p


def test_equal_scores_agree_with_nothing():
    found = rank_agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    assert (found.tau, found.p) == (0, pytest.approx(1))
