from __future__ import annotations

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published import vlcs_source
from fsdil_scenarios.published.vlcs_source import IMAGES, verify

import fsdil_bench
from fsdil_bench import DataError, load_stream


def test_four_domains_and_a_fixed_split(tmp_path, toy_registry):
    tree = trees.vlcs(tmp_path / "tree" / "VLCS").parent
    stream = load_stream("vlcs-1shot", data=tree)
    assert [d.name for d in stream.domains] == ["VOC2007", "LabelMe", "SUN09", "Caltech101"]
    assert [len(d.train) for d in stream.domains] == [5 * 3, 5, 5, 5]
    for domain in stream.domains:
        assert np.bincount(domain.test.labels).tolist() == [1] * 5
        for sample_id, label in zip(domain.test.ids, domain.test.labels, strict=True):
            assert sample_id.split("/")[:2] == [domain.name, trees.VLCS_CLASSES[label]]
    # Other numbers mean that every result on VLCS changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "7933827bbbe724db"
    record = fsdil_bench.run(
        "ncm", "vlcs-1shot", data=tree, backbone="toy-clip", registry=toy_registry, out=tmp_path
    )
    assert len(record.matrix[-1]) == 4


def test_verify_and_build_say_what_is_missing(tmp_path, monkeypatch):
    tree = trees.vlcs(tmp_path)
    monkeypatch.setattr(vlcs_source, "IMAGES", dict.fromkeys(IMAGES, 20))
    assert verify(tree) == []
    (tree / "SUN09/dog").rename(tree / "SUN09/cat")
    assert verify(tree) == [
        "SUN09: unexpected folders: 1, for instance cat",
        "SUN09/dog: no such folder",
        "SUN09: 16 images, 20 are published",
    ]
    with pytest.raises(DataError, match=r"1 of 5 classes .*SUN09': dog \(0\)"):
        load_stream("vlcs-1shot", data=tree)


def test_published_numbers():
    assert sum(IMAGES.values()) == 10_729
