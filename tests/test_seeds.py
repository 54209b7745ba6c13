from __future__ import annotations

import torch

from fsdil_bench.seeds import derive, numpy_generator, seed_everything, torch_generator


def test_each_purpose_has_its_own_stream():
    assert derive(0, "a") == derive(0, "a")
    assert len({derive(0, "a"), derive(1, "a"), derive(0, "b"), derive(0, "a", 1)}) == 4
    assert 0 <= derive(0, "a") < 2**63


def test_generators_repeat():
    assert (numpy_generator(3, "x").random(5) == numpy_generator(3, "x").random(5)).all()
    first, second = (torch.rand(5, generator=torch_generator(3, "x")) for _ in range(2))
    assert torch.equal(first, second)


def test_global_generators_follow():
    seed_everything(1, "learn", 0)
    first = torch.rand(3)
    seed_everything(1, "learn", 0)
    assert torch.equal(first, torch.rand(3))
