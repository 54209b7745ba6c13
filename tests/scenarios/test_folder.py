from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fsdil_scenarios.folder import Options, build
from PIL import Image

from fsdil_bench import DataError, ScenarioRequest, load_stream


@pytest.fixture
def tree(tmp_path):
    for domain in ("photo", "sketch"):
        for name in ("dog", "guinea_pig"):
            for i in range(10):
                path = tmp_path / "tree" / domain / name / f"{i}.{'png' if i % 2 else 'jpg'}"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (30, 20), (i, 0, 0)).save(path)
            (path.parent / "notes.txt").write_text("not an image")
    return tmp_path / "tree"


def request(tree, **changes):
    return ScenarioRequest(data=tree, options=Options(), **changes)


def test_domains_classes_and_split(tree):
    stream = build(request(tree))
    assert [d.name for d in stream.domains] == ["photo", "sketch"]
    assert stream.class_names == ("dog", "guinea pig")
    for domain in stream.domains:
        assert np.bincount(domain.train.labels).tolist() == [7, 7]
        assert np.bincount(domain.test.labels).tolist() == [3, 3]
        assert not set(domain.train.ids) & set(domain.test.ids)
        for sample_id, label in zip(domain.test.ids, domain.test.labels, strict=True):
            assert Path(sample_id).parts[1] == ("dog", "guinea_pig")[label]


def test_split_is_fixed_and_its_size_can_be_set(tree):
    one, two = build(request(tree)), build(request(tree))
    assert one.digest() == two.digest()
    halved = load_stream("folder-1shot", data=tree, scenario_options={"test_fraction": "0.5"})
    assert len(halved.domains[0].test) == 10


def test_names_and_synonyms_from_files(tree, tmp_path):
    names, synonyms = tmp_path / "names.json", tmp_path / "synonyms.json"
    names.write_text(json.dumps({"dog": "hound", "guinea_pig": "cavy"}))
    synonyms.write_text(json.dumps({"dog": ["pup"], "guinea_pig": ["rodent"]}))
    stream = build(request(tree, names=names, synonyms=synonyms))
    assert stream.class_names == ("hound", "cavy")
    assert stream.synonyms == (("pup",), ("rodent",))


@pytest.mark.parametrize("text", ["{", "[]", '{"dog": "hound"}'])
def test_unfit_names_file(tree, tmp_path, text):
    names = tmp_path / "names.json"
    names.write_text(text)
    with pytest.raises(DataError, match=r"names\.json"):
        build(request(tree, names=names))


def test_a_changed_file_has_another_key(tree):
    before = build(request(tree)).domains[0].test
    assert before.digest()  # before the file is replaced
    Image.new("RGB", (31, 20)).save(tree / before.ids[0])
    after = build(request(tree)).domains[0].test
    assert before.ids == after.ids
    assert before.keys[0] != after.keys[0]
    assert before.keys[1:] == after.keys[1:]
