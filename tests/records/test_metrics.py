from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdil_bench.records.metrics import accuracy_row, mean_and_std, scores


def test_hand_computed_example():
    matrix = [[80.0], [60.0, 40.0], [50.0, 30.0, 20.0]]
    result = scores(matrix, [10, 10, 20])
    assert result["AA*"] == pytest.approx((80 + 50 + 100 / 3) / 3)
    assert result["FA*"] == pytest.approx(((60 + 50) / 2 + 30) / 2)
    assert result["Avg"] == pytest.approx((80 + 50 + (50 * 10 + 30 * 10 + 20 * 20) / 40) / 3)
    assert result["Last"] == pytest.approx(30.0)


def test_authors_values(reference):
    data = reference("g_metrics")
    columns = (data[name] for name in ("matrices", "sizes", "AA_star", "FA_star"))
    for matrix, size, mean, old in zip(*columns, strict=True):
        found = scores([row[: t + 1] for t, row in enumerate(matrix[:size])], [1] * int(size))
        assert found["AA*"] == pytest.approx(mean, rel=1e-5)
        # Of one domain nothing is forgotten: no value here, 0 there.
        assert (found["FA*"] or 0) == pytest.approx(old, rel=1e-5)


def test_unseen_domains_do_not_count():
    seen = [[80.0], [60.0, 40.0]]
    padded = [[80.0, 99.0], [60.0, 40.0, 7.0]]
    assert scores(seen, [5, 5]) == scores(padded, [5, 5])


def test_one_domain_has_no_forgetting():
    assert scores([[70.0]], [3]) == {"AA*": 70.0, "FA*": None, "Avg": 70.0, "Last": 70.0}


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_static_model(accuracies):
    """A model that never changes: AA_t is a running mean, FA* the mean of all but the last."""
    matrix = [accuracies[: t + 1] for t in range(len(accuracies))]
    result = scores(matrix, [1] * len(accuracies))
    running = [np.mean(accuracies[: t + 1]) for t in range(len(accuracies))]
    assert result["AA*"] == pytest.approx(np.mean(running))
    assert result["FA*"] == pytest.approx(np.mean(accuracies[:-1]))


def test_accuracy_row():
    correct = np.array([True, False, True, True])
    assert accuracy_row(correct, np.array([0, 0, 1, 1]), 2) == [50.0, 100.0]


def test_spread_over_seeds():
    assert mean_and_std([1.0, 3.0]) == (2.0, 1.0)
    assert mean_and_std([5.0]) == (5.0, None)
    assert mean_and_std([None, 5.0]) == (None, None)
