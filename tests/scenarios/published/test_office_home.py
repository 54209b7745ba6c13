from __future__ import annotations

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published.office_home_source import IMAGES, verify

from fsdil_bench import DataError, load_stream


def stream_of(tree, shots=1):
    return load_stream(f"office-home-{shots}shot", data=tree)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.office_home(tmp_path_factory.mktemp("office-home"))


def test_real_world_comes_first(tree):
    stream = stream_of(tree)
    assert [d.name for d in stream.domains] == ["Real World", "Product", "Clipart", "Art"]
    assert [len(d.train) for d in stream.domains] == [65 * 3, 65, 65, 65]
    assert stream.transform == "clip"
    assert len(stream.class_names) == 65
    for domain in stream.domains:
        assert np.bincount(domain.test.labels).tolist() == [1] * 65
        for sample_id, label in zip(domain.test.ids, domain.test.labels, strict=True):
            assert sample_id.split("/")[:2] == [domain.name, trees.OFFICE_HOME_CLASSES[label]]
    # Other numbers mean that every result on Office-Home changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "899d3f57a2f3e2b4"
    assert trees.choice(stream.domains[3].test) == "321181265a98ae5b"


@pytest.mark.parametrize("spelling", ["Real_World", "RealWorld"])
def test_other_spellings_give_the_same_stream(tmp_path, tree, spelling):
    other = stream_of(trees.office_home(tmp_path / "OfficeHomeDataset", real_world=spelling).parent)
    assert other.digest() == stream_of(tree).digest()
    base = other.domains[0].train
    assert base.load(base.ids[0]).shape == (16, 16, 3)


def test_bad_data(tmp_path):
    tree = trees.office_home(tmp_path, per_class=2)
    (tree / "Art" / "Bed").rename(tree / "Art" / "Cot")
    (tree / "Art" / "TV" / "00001.jpg").unlink()
    with pytest.raises(DataError, match=r"2 of 65 classes .*Art': Bed \(0\), TV \(1\)"):
        stream_of(tree)
    (tree / "Real World").rename(tree / "World")
    with pytest.raises(DataError, match="has no folder 'Real World'"):
        stream_of(tree)
    (tree / "Product").rename(tree / "Things")
    with pytest.raises(DataError, match="lacks 1 of the 3 folders of office-home: Product"):
        stream_of(tree)


def test_verify(tmp_path, monkeypatch):
    tree = trees.office_home(tmp_path, per_class=2, real_world="Real_World")
    monkeypatch.setattr(
        "fsdil_scenarios.published.office_home_source.IMAGES", dict.fromkeys(IMAGES, 130)
    )
    assert verify(tree) == []
    (tree / "Real_World" / "Bed").rename(tree / "Real_World" / "Cot")
    assert verify(tree) == [
        "Real_World: unexpected folders: 1, for instance Cot",
        "Real_World/Bed: no such folder",
        "Real_World: 128 images, 130 are published",
    ]


def test_published_numbers():
    assert sum(IMAGES.values()) == 15_588
