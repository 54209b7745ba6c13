from __future__ import annotations

import numpy as np

from fsdil_bench import Domain, Samples, Stream
from fsdil_bench.data.train_test_copies import describe_copies, drop_copies, find_copies


def samples(**key_of):
    return Samples(tuple(key_of), np.zeros(len(key_of)), load=None, keys=tuple(key_of.values()))


STREAM = Stream(
    "s",
    ("one", "two"),
    (
        Domain("a", samples(a1="x", a2="y", a3="w", a4="x"), samples(a5="z")),
        Domain("b", samples(b1="z", b2="v"), samples(b3="x", b4="u", b5="u")),
    ),
    unseen=(("elsewhere", samples(c1="v")),),
    notes={"kept": 1},
)


def test_copies_are_found_in_any_domain():
    # The base domain's training image in a later test set, a later one's in the base test set,
    # and one in a test set of no domain. Copies inside one side do not matter.
    assert find_copies(STREAM) == [("a5", "b1"), ("b3", "a1"), ("c1", "b2")]


def test_dropping_takes_the_training_copies_and_leaves_the_tests():
    clean = drop_copies(STREAM)
    assert [domain.train.ids for domain in clean.domains] == [("a2", "a3"), ()]
    assert [d.test.ids for d in clean.domains] == [d.test.ids for d in STREAM.domains]
    assert clean.notes == {"kept": 1, "duplicates_dropped": 4}
    assert find_copies(clean) == []


def test_the_description_is_one_line_with_a_few_examples():
    assert describe_copies([("t", "l")]) == (
        "1 test image is among the training images too, byte for byte: t = l"
    )
    text = describe_copies([(f"t{i}", f"l{i}") for i in range(50)])
    assert text.startswith("50 test images are among")
    assert text.endswith("t0 = l0, t1 = l1, t2 = l2 ...")
