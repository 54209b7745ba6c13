from __future__ import annotations

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published.core50 import block_split, build
from fsdil_scenarios.published.core50_source import FRAMES, SOURCE, verify

from fsdil_bench import DataError, ScenarioRequest, load_stream


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.core50(tmp_path_factory.mktemp("core50"))


@pytest.fixture(scope="module")
def stream(tree):
    return build(ScenarioRequest(data=tree))


def session_of(samples):
    return {sample_id.split("/")[0] for sample_id in samples.ids}


def test_domains_are_the_training_sessions(stream):
    assert [d.name for d in stream.domains] == [f"s{i}" for i in range(1, 9)]
    sessions = [1, 2, 4, 5, 6, 8, 9, 11]
    for domain, session in zip(stream.domains, sessions, strict=True):
        assert session_of(domain.train) | session_of(domain.test) == {f"s{session}"}
        assert stream.notes["sessions"][domain.name] == session
    assert stream.transform == "core50"
    assert not stream.unseen


def test_every_class_is_an_object(stream):
    assert len(stream.class_names) == len(set(stream.class_names)) == 50
    assert all(len(words) == 10 for words in stream.synonyms)
    for part in (stream.domains[3].train, stream.domains[3].test):
        objects = [int(i.split("/")[1].removeprefix("o")) for i in part.ids]
        assert objects == [label + 1 for label in part.labels]


def test_a_fifth_of_the_frames_of_each_class_is_held_out(tmp_path):
    tree = trees.core50(tmp_path, frames=13, sessions=trees.CORE50_TRAIN[:8])
    for domain in build(ScenarioRequest(data=tree)).domains:
        assert np.bincount(domain.test.labels).tolist() == [round(0.2 * 13)] * 50
        assert np.bincount(domain.train.labels).tolist() == [13 - round(0.2 * 13)] * 50
        assert not set(domain.train.ids) & set(domain.test.ids)


def test_the_split_is_random_but_fixed(tree, stream):
    again = build(ScenarioRequest(data=tree / "core50_128x128"))
    assert again.digest() == stream.digest()
    held_out = {i[-7:] for domain in stream.domains for i in domain.test.ids}
    assert len(held_out) == 6  # each of the six frames somewhere
    # Other numbers mean that every result on CORe50 changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "3e24e79f4379d59e"
    assert trees.choice(stream.domains[7].train) == "03c3d4077e5fc3a2"


def test_shots_are_drawn_from_the_training_frames(tree, stream):
    drawn = load_stream("core50-4shot", data=tree, seed=1)
    assert [len(d.train) for d in drawn.domains] == [250] + [200] * 7
    for domain, all_of_it in zip(drawn.domains, stream.domains, strict=True):
        assert set(domain.train.ids) <= set(all_of_it.train.ids)
        assert domain.test.ids == all_of_it.test.ids


def test_blocks_are_stretches_of_video_apart_from_the_training_frames():
    frames = [f"{i:03}" for i in range(300)]
    starts = set()
    for session in (1, 2, 4):
        for name in ("o1", "o2", "o3", "o4"):
            train, test = block_split(frames, session, name)
            numbers = [int(f) for f in test]
            assert numbers == list(range(numbers[0], numbers[0] + 60))
            distance = min(abs(int(f) - n) for f in train for n in (numbers[0], numbers[-1]))
            assert distance > 10
            assert len(train) >= 300 - 60 - 20
            starts.add(numbers[0])
    assert len(starts) > 6


@pytest.mark.parametrize("count", [2, 3, 6, 11, 29])
def test_blocks_of_short_videos(count):
    train, test = block_split([f"{i:03}" for i in range(count)], 1, "o1")
    assert len(test) == max(1, round(0.2 * count))
    assert train
    assert not set(train) & set(test)


def test_variant_blocks(tree, stream):
    blocks = build(ScenarioRequest("blocks", tree))
    assert [len(d.test) for d in blocks.domains] == [len(d.test) for d in stream.domains]
    assert blocks.digest() != stream.digest()
    assert blocks.notes["split"] != stream.notes["split"]


def test_variant_sessions_adds_the_official_test_sessions(tree, stream):
    variant = build(ScenarioRequest("sessions", tree))
    assert [session_of(samples) for _, samples in variant.unseen] == [{"s3"}, {"s7"}, {"s10"}]
    assert not {name for name, _ in variant.unseen} & {d.name for d in variant.domains}
    assert all(np.bincount(s.labels).tolist() == [6] * 50 for _, s in variant.unseen)
    for a, b in zip(variant.domains, stream.domains, strict=True):
        assert a.test.digest() == b.test.digest()


def test_test_sessions_are_needed_only_for_that_variant(tmp_path):
    tree = trees.core50(tmp_path, frames=2, sessions=trees.CORE50_TRAIN)
    assert len(build(ScenarioRequest(data=tree)).domains) == 8
    with pytest.raises(DataError, match=r"lacks 3 of the 11 folders of core50: s3, s7, s10"):
        build(ScenarioRequest("sessions", tree))


def test_bad_data(tmp_path):
    with pytest.raises(DataError, match="nowhere' is not a folder"):
        build(ScenarioRequest(data=tmp_path / "nowhere"))
    with pytest.raises(DataError, match="lacks 8 of the 8 folders") as caught:
        build(ScenarioRequest(data=tmp_path))
    assert "data get core50" in caught.value.remedy
    tree = trees.core50(tmp_path, frames=2, sessions=trees.CORE50_TRAIN)
    folder = tree / "core50_128x128" / "s9"
    (folder / "o7").rename(folder / "elsewhere")
    (folder / "o50" / "C_09_50_001.png").unlink()
    with pytest.raises(DataError, match=r"2 of 50 classes .*s9': o7 \(0\), o50 \(1\)"):
        build(ScenarioRequest(data=tree))


def test_verify_says_all_that_is_wrong(tmp_path, monkeypatch):
    tree = trees.core50(tmp_path, frames=2)
    monkeypatch.setattr(
        "fsdil_scenarios.published.core50_source.FRAMES", dict.fromkeys(FRAMES, 100)
    )
    assert verify(tree) == verify(tree / "core50_128x128") == []
    images = tree / "core50_128x128"
    (images / "s1" / "o1" / "C_01_01_000.png").unlink()
    (images / "s2" / "o1" / "C_02_01_000.png").write_bytes(b"")
    (images / "s4" / "o1" / "C_04_01_000.png").write_text("<html>")
    (images / "s5" / "o1" / "C_05_01_000.png").rename(images / "s5" / "o1" / "C_05_02_000.png")
    (images / "s6" / "o51").mkdir()
    (images / "s7" / "o1" / "readme.txt").write_text("")
    lines = "\n".join(verify(tree))
    for told in (
        "s1: 99 images, 100 are published",
        "s2/o1: empty files: 1, for instance C_02_01_000.png",
        "s4/o1: files that are no images: 1, for instance C_04_01_000.png",
        "s5/o1: 1 images are not called C_05_01_<frame>.png, for instance C_05_02_000.png",
        "s6: unexpected folders: 1, for instance o51",
        "s7/o1: unexpected entries: 1, for instance readme.txt",
    ):
        assert told in lines
    assert len(lines.splitlines()) == 6
    assert verify(tmp_path / "nowhere") == [f"'{tmp_path / 'nowhere'}' is not a folder"]


def test_source():
    assert sum(FRAMES.values()) == 164_866
    [archive] = SOURCE.downloads
    assert archive.url.endswith("/core50_128x128.zip")
    assert archive.size == 5_892_103_007  # so that neither is fetched unchecked
    assert archive.md5 == "745f3373fed08d69343f1058ee559e13"


def test_the_frames_of_one_video_are_one_group(stream):
    for domain in stream.domains:
        assert len(set(domain.test.groups)) == 50
        for sample_id, group in zip(domain.test.ids, domain.test.groups, strict=True):
            assert sample_id.rpartition("/")[0] == group
