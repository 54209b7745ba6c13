from __future__ import annotations

import numpy as np
import pytest

from fsdil_bench import Samples
from fsdil_bench.data.groups import groups_of_tests


def samples(keys, groups=()):
    ids = tuple(f"{i}" for i in range(len(keys)))
    return Samples(ids, np.zeros(len(keys)), lambda _: np.zeros((1, 1, 3), np.uint8), keys, groups)


def test_images_without_groups_have_none():
    assert groups_of_tests([samples("abc"), samples("abc")]) is None


def test_no_group_spans_two_domains():
    found = groups_of_tests([samples("abc", ("v", "w", "v")), samples("de", ("v", "v"))])
    assert found.tolist() == [0, 1, 0, 2, 2]
    assert found.dtype == np.int32


def test_copies_are_one_group_and_join_groups():
    assert groups_of_tests([samples("aba")]).tolist() == [0, 1, 0]
    assert groups_of_tests([samples("abbc", ("v", "v", "w", "w"))]).tolist() == [0, 0, 0, 0]


def test_groups_are_kept_and_hashed():
    plain, grouped = samples("abc"), samples("abc", ("v", "w", "v"))
    assert grouped.subset([2, 1]).groups == ("v", "w")
    assert plain.subset([2, 1]).groups == ()
    assert plain.digest() != grouped.digest()
    with pytest.raises(ValueError, match="groups"):
        samples("abc", ("v",))


def test_the_hash_without_groups_is_that_of_earlier_versions():
    assert samples("ab").digest() == (
        "4597e7fc07b596b67f2722062143a00ca3044d3f8363ef3252775772ccc389c9"
    )
