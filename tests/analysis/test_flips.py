"""Which images flip between two runs, against an independent count."""

from __future__ import annotations

import base64

import numpy as np

from fsdil_bench.analysis.flips import most_disputed, packed, right_at_the_end, runs_of
from fsdil_bench.records.record import PREDICTIONS_FILE


def by_hand(record):
    """A list of True and False, image by image."""
    with np.load(record.folder / PREDICTIONS_FILE) as arrays:
        last = arrays[f"classes_{len(record.matrix) - 1}"].tolist()
        return [a == b for a, b in zip(arrays["labels"].tolist(), last, strict=True)]


def test_bits_say_which_images_are_right(made, tmp_path):
    record = made.make_record(tmp_path, images=61, domains=3)
    right = right_at_the_end(record)
    assert right.tolist() == by_hand(record)
    read = base64.b64decode(packed(right))
    bits = [bool(read[i // 8] & (128 >> i % 8)) for i in range(len(right))]
    assert bits == by_hand(record)
    assert len(read) == -(-183 // 8)
    (record.folder / PREDICTIONS_FILE).unlink()
    assert right_at_the_end(record) is None


def test_labels_in_short():
    for labels in ([0, 0, 0, 2, 2, 1], [5], [0, 1, 0, 1]):
        runs = runs_of(np.array(labels))
        pairs = zip(runs[::2], runs[1::2], strict=True)
        assert [label for label, times in pairs for _ in range(times)] == labels
    assert runs_of(np.array([0, 0, 0, 2, 2, 1])) == [0, 3, 2, 2, 1, 1]


def test_most_disputed_images(made, tmp_path):
    rows = [
        [made.make_record(tmp_path, name, seed=seed, level=level) for seed in range(2)]
        for name, level in (("good", 0.9), ("fair", 0.7), ("bad", 0.4))
    ]
    shares = [[sum(pair) / 2 for pair in zip(*map(by_hand, row), strict=True)] for row in rows]
    spread = [
        sum((s - sum(image) / 3) ** 2 for s in image) / 3 for image in zip(*shares, strict=True)
    ]
    chosen = most_disputed([rows], 20)
    assert len(chosen) == 20
    assert chosen == sorted(chosen)
    least = min(spread[i] for i in chosen)
    assert all(value <= least + 1e-9 for i, value in enumerate(spread) if i not in chosen)
    assert most_disputed([rows, rows], 20) == chosen
    # Where all agree, there is nothing to show.
    assert most_disputed([rows[:1]], 20) == []
    assert most_disputed([], 20) == []
    everything = most_disputed([rows], 10_000)
    assert everything == [i for i, value in enumerate(spread) if value > 1e-9]
