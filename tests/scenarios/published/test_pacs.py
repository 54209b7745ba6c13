from __future__ import annotations

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published.pacs import BROKEN, build
from fsdil_scenarios.published.pacs_source import IMAGES, verify

from fsdil_bench import DataError, ScenarioRequest, load_stream


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.pacs(tmp_path_factory.mktemp("pacs"))


@pytest.fixture
def listed(tmp_path):
    return trees.pacs(tmp_path, lists=".")


def test_domains_classes_and_drawn_split(tree):
    stream = build(ScenarioRequest(data=tree))
    assert [d.name for d in stream.domains] == list(trees.PACS_DOMAINS)
    assert len(stream.class_names) == 7
    assert stream.transform == "clip"
    for domain in stream.domains:
        assert np.bincount(domain.test.labels).tolist() == [3] * 7
        assert np.bincount(domain.train.labels).tolist() == [7] * 7
        assert not set(domain.train.ids) & set(domain.test.ids)
        for sample_id, label in zip(domain.train.ids, domain.train.labels, strict=True):
            assert sample_id.split("/")[:2] == [domain.name, trees.PACS_CLASSES[label]]
    assert stream.notes["split"] == "draw 1"
    # Other numbers mean that every result on PACS changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "72f7b7773de08ca3"
    assert trees.choice(stream.domains[3].train) == "63091acaa3ca1c2b"


@pytest.mark.parametrize("place", ["pacs_data", "kfold", "images"])
def test_images_in_a_folder_of_the_archive(tmp_path, tree, place):
    trees.pacs(tmp_path / place)
    digest = build(ScenarioRequest(data=tree)).digest()
    assert build(ScenarioRequest(data=tmp_path)).digest() == digest
    image = build(ScenarioRequest(data=tmp_path)).domains[0].test
    assert image.load(image.ids[0]).shape == (16, 16, 3)


@pytest.mark.parametrize("place", [".", "splits", "pacs_label"])
def test_official_lists_are_used_where_they_are(tmp_path, place):
    stream = build(ScenarioRequest(data=trees.pacs(tmp_path, lists=place)))
    for domain in stream.domains:
        assert np.bincount(domain.train.labels).tolist() == [8] * 7
        assert {i.rsplit(".", 1)[0][-1] for i in domain.test.ids} == {"4", "9"}
        assert not set(domain.train.ids) & set(domain.test.ids)
        for sample_id, label in zip(domain.test.ids, domain.test.labels, strict=True):
            assert sample_id.split("/")[1] == trees.PACS_CLASSES[label]
    assert stream.notes["split"] == "official lists"


def test_lists_beside_a_folder_with_the_images(tmp_path):
    trees.pacs(tmp_path / "kfold", lists="../splits")
    stream = build(ScenarioRequest(data=tmp_path / "kfold"))
    assert stream.notes["split"] == "official lists"


def test_the_image_that_is_damaged_as_published_is_left_out(listed, tmp_path):
    (broken,) = BROKEN
    digest = build(ScenarioRequest(data=listed)).digest()
    with (listed / "sketch_train_kfold.txt").open("a") as file:
        file.write(f"{broken} 1\n")
    assert build(ScenarioRequest(data=listed)).digest() == digest
    assert not [line for line in verify(listed) if "not there" in line]

    tree = trees.pacs(tmp_path / "drawn")
    digest = build(ScenarioRequest(data=tree)).digest()
    trees.write(tree / broken, 0)
    assert build(ScenarioRequest(data=tree)).digest() == digest


def test_bad_lists(listed):
    (listed / "photo" / "dog" / "pic_000.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of the 280 images .*: photo/dog/pic_000\.jpg"):
        build(ScenarioRequest(data=listed))
    (listed / "cartoon_crossval_kfold.txt").unlink()
    with pytest.raises(DataError, match="lacks 1 of the 8 lists of pacs: cartoon_crossval"):
        build(ScenarioRequest(data=listed))


def test_lists_of_other_classes(listed):
    for path in listed.glob("*_kfold.txt"):
        path.write_text(path.read_text().replace("/person/", "/robot/"))
    with pytest.raises(DataError, match="robot"):
        build(ScenarioRequest(data=listed))


def test_bad_data(tmp_path):
    tree = trees.pacs(tmp_path, per_class=2)
    (tree / "sketch" / "house").rename(tree / "sketch" / "hut")
    with pytest.raises(DataError, match=r"1 of 7 classes .*sketch': house \(0\)"):
        build(ScenarioRequest(data=tree))
    (tree / "photo").rename(tree / "photos")
    with pytest.raises(DataError, match="lacks 1 of the 4 folders of pacs: photo"):
        load_stream("pacs-1shot", data=tree)


def test_verify(listed, monkeypatch):
    monkeypatch.setattr("fsdil_scenarios.published.pacs_source.IMAGES", dict.fromkeys(IMAGES, 70))
    assert verify(listed) == []
    (listed / "photo" / "dog" / "pic_000.jpg").unlink()
    (listed / "cartoon" / "cat").mkdir()
    assert verify(listed) == [
        "photo: 69 images, 70 are published",
        "cartoon: unexpected folders: 1, for instance cat",
        "photo_train_kfold.txt: 1 of 56 images are not there: photo/dog/pic_000.jpg",
    ]


def test_published_numbers():
    assert sum(IMAGES.values()) == 9991
