from __future__ import annotations

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published.cddb_hard import _videos, build
from fsdil_scenarios.published.cddb_hard_source import IMAGES, verify

from fsdil_bench import DataError, ScenarioRequest, load_stream

#: Real and fake training images: more than the paper takes of gaugan, fewer of all others.
TRAIN = {
    "gaugan": (310, 3),
    "biggan": (4, 250),
    "wild": (6, 5),
    "whichfaceisreal": (121, 4),
    "san": (131, 130),
}
CATEGORIES = {"wild": ["", "faces"], "san": ["cars", "birds", "trees"]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.cddb(tmp_path_factory.mktemp("cddb"), TRAIN, categories=CATEGORIES)


@pytest.fixture(scope="module")
def stream(tree):
    return build(ScenarioRequest(data=tree))


def test_domains_classes_and_parts(stream):
    assert [d.name for d in stream.domains] == list(trees.CDDB_DOMAINS)
    assert stream.class_names == ("real image", "deep fake image")
    assert [len(words) for words in stream.synonyms] == [10, 10]
    assert stream.transform == "cddb"
    for domain in stream.domains:
        assert np.bincount(domain.test.labels).tolist() == [3, 2]
        assert all(f"{domain.name}/val/" in i for i in domain.test.ids)
        assert all(f"{domain.name}/train/" in i for i in domain.train.ids)
        for part in (domain.train, domain.test):
            folders = [i.split("/")[-2] for i in part.ids]
            assert folders == [("0_real", "1_fake")[label] for label in part.labels]


def test_training_parts_have_the_sizes_of_the_paper_or_all_there_is(stream):
    counts = {d.name: np.bincount(d.train.labels).tolist() for d in stream.domains}
    assert counts == {
        "gaugan": [300, 3],
        "biggan": [4, 240],
        "wild": [6, 5],
        "whichfaceisreal": [120, 4],
        "san": [130, 130],
    }
    short = stream.notes["smaller_than_published"]
    assert short["gaugan/1_fake"] == "3 of 3000"
    assert short["biggan/0_real"] == "4 of 1200"
    assert set(short) == {
        "gaugan/1_fake", "biggan/0_real", "wild/0_real", "wild/1_fake", "whichfaceisreal/1_fake",
    }  # fmt: skip


def test_the_parts_are_drawn_at_random_but_fixed(tree, stream):
    assert build(ScenarioRequest(data=tree.parent / tree.name)).digest() == stream.digest()
    real = [i for i in stream.domains[0].train.ids if "0_real" in i]
    assert real != [f"gaugan/train/0_real/{i:05}.png" for i in range(300)]
    assert real == sorted(real)
    # Other numbers mean that every result on CDDB-Hard changes: raise DRAW_VERSION then.
    assert trees.choice(stream.domains[0].train) == "1374c1dae3331aee"
    assert trees.choice(stream.domains[4].train) == "baedf8966d971463"


def test_folders_of_categories_are_accepted_everywhere(stream):
    wild = {i.rsplit("/", 1)[0] for i in stream.domains[2].train.ids}
    assert wild == {
        f"wild/train/{inner}{name}" for inner in ("", "faces/") for name in ("0_real", "1_fake")
    }
    san = {i.split("/")[2] for i in stream.domains[4].test.ids}
    assert san == {"cars", "birds", "trees"}


def test_variant_balanced_uses_everything(tree):
    balanced = load_stream("cddb-hard-1shot@balanced", data=tree)
    assert np.bincount(balanced.domains[0].train.labels).tolist() == [310, 3]
    assert "smaller_than_published" not in balanced.notes
    assert len(balanced.domains[1].train) == 2  # one shot of each class


def test_images_in_a_folder_of_the_archive(tmp_path):
    small = dict.fromkeys(TRAIN, (3, 3))
    inside = build(ScenarioRequest(data=trees.cddb(tmp_path / "CDDB", small).parent))
    assert inside.digest() == build(ScenarioRequest(data=tmp_path / "CDDB")).digest()


def test_bad_data(tmp_path):
    tree = trees.cddb(tmp_path, dict.fromkeys(TRAIN, (2, 2)))
    for path in (tree / "san" / "val" / "1_fake").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"san/val' has 0 images in folders 1_fake"):
        build(ScenarioRequest(data=tree))
    (tree / "wild").rename(tree / "tame")
    with pytest.raises(DataError, match=r"lacks 1 of the 5 folders of cddb-hard: wild"):
        build(ScenarioRequest(data=tree))


def test_verify(tmp_path, monkeypatch):
    tree = trees.cddb(tmp_path, dict.fromkeys(TRAIN, (3, 3)), categories=CATEGORIES)
    counts = {d: {"train": (3, 3), "val": (3, 2)} for d in TRAIN}
    monkeypatch.setattr("fsdil_scenarios.published.cddb_hard_source.IMAGES", counts)
    assert verify(tree) == []
    (tree / "gaugan" / "val" / "0_real" / "00000.png").unlink()
    (tree / "wild" / "train" / "faces" / "0_real" / "00001.png").write_bytes(b"")
    assert verify(tree) == [
        "gaugan/val/0_real: 2 images, 3 are published",
        "wild/train/faces/0_real: empty files: 1, for instance 00001.png",
    ]


def test_published_numbers():
    assert IMAGES["wild"] == {"train": (3115, 3093), "val": (1019, 1044)}
    assert sum(sum(counts) for parts in IMAGES.values() for counts in parts.values()) == 21421


def test_frames_of_videos_are_groups_where_names_tell_the_video():
    names = ["wild/val/0_real/12_345.png", "wild/val/0_real/12_346.png", "wild/val/1_fake/12_1.png"]
    real, again, fake = _videos(names)
    assert real == again == "wild/val/0_real/12"
    assert fake == "wild/val/1_fake/12"
    assert _videos(["wild/val/0_real/fake_1.png", "san/val/0_real/1_2.png"]) == ()
