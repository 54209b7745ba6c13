from __future__ import annotations

import numpy as np
import toy_plugin

from fsdil_bench.scenario import Samples
from fsdil_bench.shots import draw_shots


def drawn_ids(shots, seed=0, **options):
    stream = draw_shots(toy_plugin.build_stream(), shots, seed, **options)
    return [set(domain.train.ids) for domain in stream.domains]


def test_base_keeps_all_and_others_k_per_class():
    stream = draw_shots(toy_plugin.build_stream(), 2, 0)
    assert len(stream.domains[0].train) == 36
    for domain in stream.domains[1:]:
        assert np.bincount(domain.train.labels).tolist() == [2, 2, 2]


def test_draws_are_nested_in_k():
    one, four = drawn_ids(1), drawn_ids(4)
    for small, large in zip(one[1:], four[1:], strict=True):
        assert small < large


def test_seed_changes_the_draw_and_nothing_else_does():
    assert drawn_ids(2) == drawn_ids(2)
    assert drawn_ids(2) != drawn_ids(2, seed=1)


def test_listing_order_does_not_matter():
    stream = toy_plugin.build_stream()
    shuffled = stream.domains[1].train.subset(np.random.default_rng(0).permutation(36))
    object.__setattr__(stream.domains[1], "train", shuffled)
    assert set(draw_shots(stream, 2, 0).domains[1].train.ids) == drawn_ids(2)[1]


def test_base_limit():
    assert len(drawn_ids(1, base_limit=5)[0]) == 15
    assert drawn_ids(1, base_limit=5)[1:] == drawn_ids(1)[1:]


def test_digest_depends_on_ids_labels_and_order():
    load = toy_plugin.load
    one = Samples(("a", "b"), np.array([0, 1]), load).digest()
    assert one != Samples(("b", "a"), np.array([0, 1]), load).digest()
    assert one != Samples(("a", "b"), np.array([1, 0]), load).digest()
    assert one == Samples(("a", "b"), np.array([0, 1]), load).digest()
