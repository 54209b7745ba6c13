"""What routers take each domain for, against an independent count."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fsdil_bench.analysis.routing import routing_confusion
from fsdil_bench.records.record import PREDICTIONS_FILE
from fsdil_bench.report import terminal


def test_confusion_is_a_count_of_the_predictions(made, tmp_path):
    record = made.make_record(tmp_path, router=True, domains=4)
    with np.load(record.folder / PREDICTIONS_FILE) as arrays:
        for t, found in enumerate(routing_confusion(record)):
            assert found.shape == (t + 1, t + 1)
            pairs = Counter(
                zip(arrays["domains"].tolist(), arrays[f"routed_{t}"].tolist(), strict=False)
            )
            images = Counter(arrays["domains"].tolist())
            for (true, chosen), count in pairs.items():
                assert found[true, chosen] == pytest.approx(100 * count / images[true])
            assert found.sum(1) == pytest.approx(100)
            shares = np.array([images[i] for i in range(t + 1)])
            assert np.average(np.diag(found), weights=shares) == pytest.approx(record.routing[t])


def test_others_have_none(made, tmp_path):
    assert routing_confusion(made.make_record(tmp_path, "plain")) is None
    assert terminal.routing(made.make_record(tmp_path, "plain")) is None
    without = made.make_record(tmp_path, "router", router=True)
    (without.folder / PREDICTIONS_FILE).unlink()
    assert routing_confusion(without) is None


def test_the_terminal_shows_the_last_step(made, tmp_path, capsys):
    from rich.console import Console

    record = made.make_record(tmp_path, router=True, domains=3)
    Console(width=120).print(terminal.routing(record))
    shown = capsys.readouterr().out
    for value in routing_confusion(record)[-1].ravel():
        assert f"{value:.1f}" in shown
    assert shown.count("domain 2") == 2  # as a row and as a column
