"""The variant @validation: parts of the base domain's training images, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fsdil_bench.data.streams import load_stream
from fsdil_bench.errors import DataError
from fsdil_bench.runs.rerun import verify
from fsdil_bench.runs.rerun_agreement import Verdict


@pytest.fixture
def load(toy_registry):
    return lambda scenario, **options: load_stream(scenario, registry=toy_registry, **options)


def ids(stream):
    return [set(part.ids) for d in stream.domains for part in (d.train, d.test)]


def test_it_is_made_of_base_images_that_occur_once(load):
    base = load("toy-1shot").domains[0]
    stream = load("toy-2shot@validation")
    parts = ids(stream)
    assert [domain.name for domain in stream.domains] == ["d0", "d0-shots"]
    assert set.union(*parts) <= set(base.train.ids)
    assert not set.union(*parts) & set(base.test.ids)
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_every_class_has_its_share_in_every_part(load):
    """12 images of a class: 7 for the base, 3 to draw 2 shots from, and one each to validate on."""
    first, second = load("toy-2shot@validation").domains
    for samples, count in ((first.train, 7), (second.train, 2), (first.test, 1), (second.test, 1)):
        assert np.bincount(samples.labels).tolist() == [count] * 3


def test_seeds_and_shots_change_the_draw_and_not_the_split(load):
    one, other = ids(load("toy-1shot@validation", seed=0)), ids(load("toy-2shot@validation"))
    many = [ids(load("toy-1shot@validation", seed=seed)) for seed in range(5)]
    for each in (other, *many):
        assert [each[i] for i in (0, 1, 3)] == [one[i] for i in (0, 1, 3)]
    assert one[2] < other[2]
    assert len({frozenset(each[2]) for each in many}) > 1


def test_another_base_domain_has_another_validation_part(load):
    by_base = load("toy-1shot@validation", base="d2")
    assert [domain.name for domain in by_base.domains] == ["d2", "d2-shots"]
    assert all(id_.startswith("d2/train/") for part in ids(by_base) for id_ in part)
    assert ids(load("toy-1shot@validation", order=["d2", "d0"])) == ids(by_base)


def test_too_few_images(load):
    with pytest.raises(DataError, match=r"'d0-shots' has 3 training images .* 8 are needed"):
        load("toy-8shot@validation")


def test_a_record_of_it_can_be_verified(toy_run, toy_registry, tmp_path):
    record = toy_run(scenario="toy-2shot@validation")
    assert record.spec["order"] == ["d0", "d0-shots"]
    again = verify(record, out=tmp_path / "again", registry=toy_registry)
    assert again.outcome is Verdict.IDENTICAL
