"""Every built-in method can be rehearsed, and its forecast makes sense."""

from __future__ import annotations

import pytest
from fsdil_methods import METHODS

from fsdil_bench.forecast.forecaster import Forecaster
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.request import RunRequest

REGISTRY = load_registry()


@pytest.mark.slow
@pytest.mark.parametrize("method", [info.name for info in METHODS])
def test_rehearsal(drawn_cache, method):
    if method.startswith("avalanche"):
        pytest.importorskip("avalanche")
    run = Forecaster(REGISTRY, "a100").forecast(
        RunRequest.of(method=method, scenario="drawn-1shot")
    )
    cost = run.cost
    everything = cost.work + cost.shared
    assert cost.flops(everything) > 0
    assert everything.image_frozen + everything.image_forward >= sum(cost.sizes.tests)
    assert everything.image_backward <= everything.image_forward + everything.image_frozen + 1e-6
    assert all(amount >= 0 for work in (*cost.learn, *cost.test) for amount in work)
    assert cost.memory(run.speed) > cost.cost.image.weight_bytes
