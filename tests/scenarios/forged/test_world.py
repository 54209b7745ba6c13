"""The forged world: pure, no picture twice, and the stream that is made of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from fsdil_scenarios.forged.build import load
from fsdil_scenarios.forged.contact_sheet import main as contact_sheet
from fsdil_scenarios.forged.makers import MAKERS, VALIDATION_MAKERS
from fsdil_scenarios.forged.profile import pictures_of, transfer
from fsdil_scenarios.forged.statistics import statistics
from fsdil_scenarios.forged.world import ALL_MAKERS, CLASSES, before_forging, draw
from PIL import Image

import fsdil_bench
from fsdil_bench import load_stream

FINGERPRINT = """
import hashlib
from fsdil_scenarios.forged.world import ALL_MAKERS, CLASSES, draw
digest = hashlib.sha256()
for maker in ALL_MAKERS:
    for kind in CLASSES:
        digest.update(draw(kind, maker, 7, split="validation").tobytes())
"""


def counts(samples) -> list[int]:
    return np.bincount(samples.labels, minlength=2).tolist()


def test_pictures_are_bytes_and_the_same_on_every_call():
    for maker in ALL_MAKERS:
        for kind in CLASSES:
            first = draw(kind, maker, 3)
            assert first.shape == (64, 64, 3)
            assert first.dtype == np.uint8
            draw(kind, maker, 4)
            np.testing.assert_array_equal(draw(kind, maker, 3), first)


def test_a_fresh_process_gives_the_same_bytes():
    here: dict[str, hashlib._Hash] = {}
    exec(FINGERPRINT, here)
    command = [sys.executable, "-c", FINGERPRINT + "print(digest.hexdigest())"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == here["digest"].hexdigest()


def test_global_random_state_plays_no_part():
    np.random.seed(0)  # noqa: NPY002
    first = draw("1_fake", "stamper", 0)
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(draw("1_fake", "stamper", 0), first)


def test_no_picture_comes_twice_and_no_forgery_begins_as_a_real_one():
    """In no other split, class or maker, neither before nor after forging."""
    found = [
        picture.tobytes()
        for maker in ALL_MAKERS
        for split in ("train", "test", "validation")
        for index in range(5)
        for picture in (
            draw("0_real", maker, index, split=split),
            draw("1_fake", maker, index, split=split),
            before_forging(maker, index, split=split),
        )
    ]
    assert len(set(found)) == len(found)


def test_real_and_forged_pictures_have_the_same_subjects_and_grain():
    """Their means before forging tell nothing: within what chance makes of so many pictures."""
    real = [draw("0_real", "weaver", i).mean() for i in range(80)]
    begun = [before_forging("weaver", i).mean() for i in range(80)]
    error = np.sqrt((np.var(real) + np.var(begun)) / 80)
    assert abs(np.mean(real) - np.mean(begun)) < 3.5 * error


def test_the_stream_is_a_fifth_of_cddb_hard():
    stream = load_stream("forged-1shot", base="weaver")
    assert [d.name for d in stream.domains] == list(MAKERS)
    assert stream.class_names == ("real image", "deep fake image")
    assert [len(words) for words in stream.synonyms] == [10, 10]
    published = {"weaver": (300, 3000), "stamper": (1200, 240), "splicer": (3115, 310),
                 "polisher": (120, 600), "sharpener": (130, 130)}  # fmt: skip
    for maker, sizes in published.items():
        base = load_stream("forged-1shot", base=maker).domains[0]
        assert counts(base.train) == [pytest.approx(size / 5, abs=3) for size in sizes]
    for domain in stream.domains:
        assert counts(domain.test) == [120, 120]


def test_balanced_has_as_many_of_either_and_the_base_as_many_in_all():
    plain, balanced = (load_stream(f"forged-1shot{v}").domains[0] for v in ("", "@balanced"))
    assert counts(balanced.train)[0] == counts(balanced.train)[1]
    assert len(balanced.train) == len(plain.train) == 660
    assert balanced.test.ids == plain.test.ids


@pytest.mark.parametrize("shots", [1, 2, 4, 5, 8])
@pytest.mark.parametrize("variant", ["", "@balanced", "@validation"])
def test_later_domains_have_so_many_shots(shots, variant):
    for domain in load_stream(f"forged-{shots}shot{variant}", seed=3).domains[1:]:
        assert counts(domain.train) == [shots, shots]


def test_a_seed_draws_shots_and_changes_no_picture():
    one, other = (load_stream("forged-4shot", seed=seed) for seed in (0, 1))
    assert one.domains[0].train.ids == other.domains[0].train.ids
    assert one.domains[1].train.ids != other.domains[1].train.ids
    assert [d.test.ids for d in one.domains] == [d.test.ids for d in other.domains]


def test_validation_has_makers_of_its_own_and_no_picture_of_the_stream():
    stream, validation = (load_stream(f"forged-8shot{v}") for v in ("", "@validation"))
    assert [d.name for d in validation.domains] == ["weaver", *VALIDATION_MAKERS]
    assert counts(validation.domains[0].train) == counts(stream.domains[0].train)
    parts = [
        set(samples.ids)
        for each in (stream, load_stream("forged-8shot@balanced"))
        for domain in each.domains
        for samples in (domain.train, domain.test)
    ]
    for domain in validation.domains:
        assert not set(domain.train.ids) & set(domain.test.ids)
        for samples in (domain.train, domain.test):
            assert not any(part & set(samples.ids) for part in parts)
            assert all(i.split("/")[1] == "validation" for i in samples.ids)


def test_an_id_names_its_picture():
    stream = load_stream("forged-1shot")
    for domain in stream.domains:
        kind = CLASSES[domain.test.labels[-1]]
        np.testing.assert_array_equal(
            domain.test.load(domain.test.ids[-1]), draw(kind, domain.name, 119, split="test")
        )
    np.testing.assert_array_equal(
        load("printer/validation/1_fake/1000"),
        draw("1_fake", "printer", 1000, split="validation"),
    )


def test_hand_made_statistics_tell_the_base_and_not_the_next_maker():
    """At the backbone's size: what is learned about the weaver does not carry over."""
    import torch

    parts = [[pictures_of(m, start, 40) for start in (0, 40)] for m in ("weaver", "stamper")]
    train, test = (
        [torch.tensor(np.stack([statistics(p) for p in part[k][0]])).float() for part in parts]
        for k in range(2)
    )
    table = transfer(train, test, [part[1] for part in parts[0]], penalty=1e-3)
    assert table[0, 0] >= 85
    assert table[0, 1] <= 70
    assert table[1, 1] >= 70


def test_a_contact_sheet(tmp_path):
    file = tmp_path / "sheet.png"
    contact_sheet(["--makers", "weaver", "printer", "--samples", "2", "--out", str(file)])
    with Image.open(file) as sheet:
        pixels = np.asarray(sheet.convert("RGB"))
    np.testing.assert_array_equal(
        pixels[82:146, 48:112], draw("1_fake", "weaver", 0, split="validation")
    )


def test_a_run(tmp_path):
    options = {"order": ["weaver", "stamper"], "base_limit": 20}
    record = fsdil_bench.run("ncm", "forged-1shot", out=tmp_path, **options)
    assert [len(row) for row in record.matrix] == [1, 2]
