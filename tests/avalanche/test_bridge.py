from __future__ import annotations

import pytest
import torch
import toy_plugin

from fsdil_bench.data.shots import draw_shots

pytest.importorskip("avalanche")


@pytest.fixture(scope="module")
def benchmark():
    from fsdil_bench.avalanche.bridge import to_avalanche

    return to_avalanche(draw_shots(toy_plugin.build_stream(), 2, 0), size=8)


def test_it_is_an_avalanche_scenario(benchmark):
    from avalanche.benchmarks import CLScenario

    assert isinstance(benchmark, CLScenario)
    assert len(benchmark.train_stream) == len(benchmark.test_stream) == 4
    assert [len(e.dataset) for e in benchmark.train_stream] == [36, 6, 6, 6]
    assert [len(e.dataset) for e in benchmark.test_stream] == [30, 33, 36, 39]


def test_every_experience_has_all_classes_and_one_task(benchmark):
    for experience in benchmark.train_stream:
        assert set(experience.dataset.targets) == {0, 1, 2}
        assert set(experience.dataset.targets_task_labels) == {0}


def test_items_are_normalised_images(benchmark):
    image, label = benchmark.test_stream[1].dataset[0][:2]
    assert image.shape == (3, 8, 8)
    assert image.dtype == torch.float32
    assert label == 0


def test_an_avalanche_strategy_trains_on_it(benchmark):
    from avalanche.training.supervised import Naive

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 3))
    before = model[1].weight.detach().clone()
    strategy = Naive(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        train_mb_size=16,
        train_epochs=2,
        evaluator=None,
    )
    strategy.train(benchmark.train_stream[0])
    assert not torch.equal(before, model[1].weight)


def test_one_line_from_a_scenario_id():
    from fsdil_bench.avalanche import benchmark as build

    drawn = build("drawn-1shot", size=48)
    assert [len(e.dataset) for e in drawn.train_stream] == [2400, 24, 24, 24, 24, 24]


def test_the_package_exports_what_users_need():
    import fsdil_bench.avalanche as package
    from fsdil_bench.avalanche import bridge, methods

    assert package.benchmark is bridge.benchmark
    assert package.to_avalanche is bridge.to_avalanche
    assert package.avalanche_method is methods.avalanche_method
    assert set(package.__all__) == set(package._LAZY)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
