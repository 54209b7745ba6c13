from __future__ import annotations

from dataclasses import replace

import numpy as np
import toy_plugin

from fsdil_bench.data.scenario import Samples
from fsdil_bench.data.shots import draw_shots


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


def test_digest_depends_on_ids_labels_content_and_order():
    def digest(ids, labels, keys):
        return Samples(tuple(ids), np.array(labels), toy_plugin.load, tuple(keys)).digest()

    one = digest("ab", [0, 1], "xy")
    assert one == digest("ab", [0, 1], "xy")
    others = [
        digest("ba", [0, 1], "xy"),
        digest("ab", [1, 0], "xy"),
        digest("ab", [0, 1], "xz"),
    ]
    assert one not in others


def test_without_keys_the_pixels_count():
    def digest(value):
        picture = np.full((2, 2, 3), value, np.uint8)
        return Samples(("a", "b"), np.array([0, 1]), lambda sample_id: picture).digest()

    assert digest(1) == digest(1) != digest(2)


def test_leaving_a_class_out_changes_no_other_draw():
    stream = toy_plugin.build_stream()
    later = stream.domains[1].train
    kept = np.flatnonzero(later.labels != 1)
    renumbered = Samples(
        tuple(later.ids[i] for i in kept), (later.labels[kept] > 0).astype(int), later.load
    )
    fewer = replace(
        stream, class_names=("red", "blue"), domains=(
            stream.domains[0], replace(stream.domains[1], train=renumbered)
        ),
    )  # fmt: skip
    without = set(draw_shots(fewer, 2, 0).domains[1].train.ids)
    everything = set(draw_shots(stream, 2, 0).domains[1].train.ids)
    assert without == {sample_id for sample_id in everything if "/1/" not in sample_id}


def test_names_of_classes_do_not_change_the_draw():
    renamed = replace(toy_plugin.build_stream(), class_names=("a", "b", "c"))
    assert [set(d.train.ids) for d in draw_shots(renamed, 2, 0).domains] == drawn_ids(2)
