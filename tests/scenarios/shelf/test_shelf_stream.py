"""The scenario shelf: sizes, splits without leak, groups, variants, names, shots."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fsdil_scenarios.names import rules
from fsdil_scenarios.shelf.build import build, load
from fsdil_scenarios.shelf.individuals import INDIVIDUALS
from fsdil_scenarios.shelf.names import NAMES, NOUNS, SYNONYMS
from fsdil_scenarios.shelf.sessions import DOMAINS, UNSEEN, VALIDATION
from fsdil_scenarios.shelf.splits import FRAMES, GAP, TEST_FRAMES, block_split, random_split
from fsdil_scenarios.shelf.world import draw

from fsdil_bench import ScenarioRequest, load_stream
from fsdil_bench.data.groups import groups_of_tests
from fsdil_bench.plugins.registry import load_registry

VARIANTS = ("", "blocks", "sessions", "validation")


@pytest.fixture(scope="module")
def streams():
    return {variant: build(ScenarioRequest(variant)) for variant in VARIANTS}


def frames(samples, who):
    """The numbers of an individual's frames."""
    return [int(i[-2:]) for i, y in zip(samples.ids, samples.labels, strict=True) if y == who]


def test_the_descriptor_agrees_with_the_stream(streams):
    info = load_registry().scenario("shelf")
    assert info.domains == tuple(d.name for d in streams[""].domains) == tuple(DOMAINS)
    assert info.classes == len(streams[""].class_names) == 50
    assert not info.needs_data


@pytest.mark.parametrize("variant", ["", "validation"])
def test_a_fifth_of_the_frames_is_held_out_at_random(streams, variant):
    for domain in streams[variant].domains:
        assert np.bincount(domain.train.labels).tolist() == [16] * 50
        assert np.bincount(domain.test.labels).tolist() == [4] * 50
        assert not set(domain.train.ids) & set(domain.test.ids)
    near = [
        min(abs(a - b) for b in frames(streams[variant].domains[0].train, who)) == 1
        for who in range(50)
        for a in frames(streams[variant].domains[0].test, who)
    ]
    assert np.mean(near) > 0.9  # as on the paper's CORe50, near copies are learned


@pytest.mark.parametrize("variant", ["blocks", "sessions"])
def test_blocks_are_away_from_all_training_frames(streams, variant):
    starts = set()
    for domain in streams[variant].domains:
        for who in range(50):
            train, test = frames(domain.train, who), frames(domain.test, who)
            assert test == list(range(test[0], test[0] + TEST_FRAMES))
            assert min(abs(a - b) for a in train for b in test) > GAP
            assert len(train) >= 12
            starts.add(test[0])
    assert starts == set(range(FRAMES - TEST_FRAMES + 1))  # anywhere in the video


def test_no_training_picture_is_of_a_session_that_is_tested_unseen(streams):
    stream = streams["sessions"]
    assert [name for name, _ in stream.unseen] == list(UNSEEN)
    learned = {i.split("/")[0] for domain in stream.domains for i in domain.train.ids}
    for name, samples in stream.unseen:
        assert {i.split("/")[0] for i in samples.ids} == {name}
        assert name not in learned
        assert np.bincount(samples.labels).tolist() == [4] * 50
        assert all(np.diff(frames(samples, who)).min() == 5 for who in range(50))
    assert all(not streams[variant].unseen for variant in VARIANTS if variant != "sessions")


def test_validation_shows_no_video_of_the_stream(streams):
    stream = streams["validation"]
    assert [d.name for d in stream.domains] == ["shelf", *VALIDATION]
    videos = {group for d in stream.domains for part in (d.train, d.test) for group in part.groups}
    for variant in VARIANTS[:-1]:
        others = [part for d in streams[variant].domains for part in (d.train, d.test)]
        others += [samples for _, samples in streams[variant].unseen]
        assert not videos & {group for samples in others for group in samples.groups}


def test_validation_is_the_scenario_own():
    stream = load_stream("shelf-4shot@validation", seed=0)
    assert [len(d.train) for d in stream.domains] == [800, 200, 200]
    assert [len(d.test) for d in stream.domains] == [200] * 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_frames_of_one_video_are_one_group(streams, variant):
    stream = streams[variant]
    for domain in stream.domains:
        for samples in (domain.train, domain.test):
            assert [i.rpartition("/")[0] for i in samples.ids] == list(samples.groups)
            assert len(set(samples.groups)) == 50
    groups = groups_of_tests([domain.test for domain in stream.domains])
    assert np.bincount(groups).tolist() == [4] * (50 * len(stream.domains))


def test_an_id_is_a_picture(streams):
    samples = streams[""].domains[2].test
    for place in (0, 123, 199):
        session, _, who, frame = samples.ids[place].split("/")
        assert int(who) == samples.labels[place]
        assert (samples.load(samples.ids[place]) == draw(int(who), session, int(frame))).all()
    other = load("shelf/validation/07/03")
    assert (other == draw(7, "shelf", 3, split="validation")).all()


def test_splits_are_fixed():
    # Other numbers mean that every result on the shelf changes: raise WORLD_VERSION then.
    assert random_split("shelf/stream/00")[1] == [11, 14, 16, 19]
    assert block_split("shelf/stream/00")[1][0] == 10


def test_shots_are_drawn_from_the_training_frames(streams):
    one, four, other = (
        load_stream(f"shelf-{shots}shot", seed=seed) for shots, seed in ((1, 0), (4, 0), (4, 1))
    )
    assert [len(d.train) for d in four.domains] == [800] + [200] * 7
    for d1, d4, everything in zip(one.domains, four.domains, streams[""].domains, strict=True):
        assert set(d1.train.ids) <= set(d4.train.ids) <= set(everything.train.ids)
        assert d4.test.ids == everything.test.ids
    assert four.domains[1].train.ids != other.domains[1].train.ids


@pytest.mark.parametrize("variant", ["", "@blocks", "@sessions"])
def test_eight_shots_and_any_base(variant):
    stream = load_stream(f"shelf-8shot{variant}", base="grass")
    assert stream.domains[0].name == "grass"
    assert {len(d.train) for d in stream.domains[1:]} == {400}


def test_names_follow_the_rules_for_synonyms():
    texts = {str(i): pair for i, pair in enumerate(zip(NAMES, SYNONYMS, strict=True))}
    assert rules.problems(texts) == []


def test_a_name_says_what_the_thing_is():
    assert NAMES[0] == "green cup with white dots"
    for who, name in zip(INDIVIDUALS, NAMES, strict=True):
        assert who.colour in name.split()
        assert who.kind in name.split()
        assert (who.mark == "plain") != (who.mark_colour in name.split()[1:])


def test_synonyms_vary_in_words_and_order():
    for kind in {who.kind for who in INDIVIDUALS}:
        own = [s for s, who in zip(SYNONYMS, INDIVIDUALS, strict=True) if who.kind == kind]
        for texts in own:
            nouns = {noun for noun in NOUNS[kind] for text in texts if f" {noun} " in f" {text} "}
            assert len(nouns) >= 4
            assert len({text.split()[0] for text in texts}) >= 4


def test_articles_are_right():
    texts = [text for texts in (NAMES, *SYNONYMS) for text in texts]
    assert "green hat with an orange sticker" in texts
    assert not [t for t in texts if re.search(r"\ba [aeiou]|\ban [^aeiou]", t)]
