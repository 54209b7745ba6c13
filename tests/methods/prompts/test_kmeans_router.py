from __future__ import annotations

import pytest
import torch
from fsdil_methods.prompts.kmeans_router import kmeans, route
from sklearn.cluster import KMeans


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(places: torch.Tensor, each: int, spread: float) -> torch.Tensor:
    noise = torch.randn(each, *places.shape, generator=generator(7))
    return (places + spread * noise).flatten(0, 1)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_points_than_centres(count: int) -> None:
    """Two classes with one shot are two points: they are the centres."""
    points = torch.randn(count, 3, generator=generator(1))
    centres = kmeans(points, 5, generator())
    assert centres.shape == (count, 3)
    assert sorted(centres.tolist()) == sorted(points.tolist())


def test_equal_points() -> None:
    centres = kmeans(torch.ones(7, 3), 5, generator())
    assert torch.equal(centres, torch.ones(5, 3))


def test_centres_are_the_means_of_what_is_far_apart() -> None:
    places = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = blobs(places, 20, 0.1)
    centres = kmeans(points, 3, generator())
    means = points.view(20, 3, 2).mean(0)
    expected = sorted(means.tolist())
    torch.testing.assert_close(torch.tensor(sorted(centres.tolist())), torch.tensor(expected))


def test_as_tight_as_the_library() -> None:
    """Any one start may end in a poor optimum; the best of ten must be as good as theirs."""
    points = torch.randn(200, 4, generator=generator(3))
    theirs = KMeans(5, n_init=10, random_state=0).fit(points.double().numpy()).inertia_
    ours = min(
        float(torch.cdist(points, kmeans(points, 5, generator(seed))).amin(1).square().sum())
        for seed in range(10)
    )
    assert ours < 1.01 * theirs


def test_the_generator_is_the_only_chance() -> None:
    points = torch.randn(50, 4, generator=generator(3))
    one, two = (kmeans(points, 5, generator(1)) for _ in range(2))
    assert torch.equal(one, two)


def test_one_domain_is_always_the_one() -> None:
    assert route(torch.randn(9, 4), [torch.randn(5, 4)]).tolist() == [0] * 9


def test_the_nearest_centre_of_all_domains_decides() -> None:
    centres = [torch.tensor([[0.0, 0.0], [9.0, 9.0]]), torch.tensor([[1.0, 0.0]])]
    queries = torch.tensor([[0.4, 0.0], [0.6, 0.0], [8.0, 8.0]])
    assert route(queries, centres).tolist() == [0, 1, 0]


def test_the_two_norms_can_disagree() -> None:
    """(1, 1) is nearer than (0, 1.5) in L2, and farther in L1."""
    centres = [torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0, 1.5]])]
    origin = torch.zeros(1, 2)
    assert route(origin, centres, "l1").tolist() == [1]
    assert route(origin, centres, "l2").tolist() == [0]


def test_queries_are_routed_by_themselves() -> None:
    centres = [torch.randn(5, 16, generator=generator(i)) for i in range(3)]
    queries = torch.randn(100, 16, generator=generator(9))
    for norm in ("l1", "l2"):
        single = torch.cat([route(query[None], centres, norm) for query in queries])
        assert torch.equal(route(queries, centres, norm), single)
