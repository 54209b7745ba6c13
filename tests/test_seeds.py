from __future__ import annotations

import pytest
import torch

from fsdil_bench.errors import RequestError
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.seeds import (
    LARGEST_SEED,
    check_seed,
    derive,
    numpy_generator,
    seed_everything,
    torch_generator,
)


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


def test_a_seed_is_one_that_every_generator_takes():
    assert check_seed(LARGEST_SEED) == 2**32 - 1
    for wrong in (-1, 2**32, int("9" * 40), True, 1.5, "0"):
        with pytest.raises(RequestError, match="from 0 to 4294967295"):
            check_seed(wrong)
    with pytest.raises(RequestError, match="from 0 to 4294967295"):
        RunRequest.of(method="ncm", scenario="drawn-1shot", seed=int("9" * 40))
