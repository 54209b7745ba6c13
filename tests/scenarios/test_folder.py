from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fsdil_scenarios.folder import Options, build
from PIL import Image

from fsdil_bench import DataError, RequestError, ScenarioRequest, load_stream
from fsdil_bench.data import file_hashes


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


@pytest.fixture
def copied(tree):
    """The tree with different images in it but for one test image that the other domain learns."""
    for number, path in enumerate(sorted(tree.rglob("*.png")) + sorted(tree.rglob("*.jpg"))):
        Image.new("RGB", (30, 20), (number * 6, 255 - number * 6, 0)).save(path)
    photo, sketch = build(request(tree)).domains
    taught, tested = photo.train.ids[0], sketch.test.ids[0]
    (tree / tested).write_bytes((tree / taught).read_bytes())
    return tree, taught, tested


def test_copies_in_training_and_test_are_told(copied, capsys):
    tree, taught, tested = copied
    capsys.readouterr()
    assert build(request(tree)).notes == {"duplicates": 1}
    told = capsys.readouterr().err
    assert (
        f"1 test image is among the training images too, byte for byte: {tested} = {taught}" in told
    )
    assert "drop_duplicates=true" in told
    build(request(tree))
    assert capsys.readouterr().err == ""  # once is enough


def test_copies_can_be_dropped(copied, capsys):
    tree, taught, _ = copied
    capsys.readouterr()
    options = {"drop_duplicates": "true"}
    plain = load_stream("folder-7shot", data=tree, base="sketch")
    clean = load_stream("folder-6shot", data=tree, base="sketch", scenario_options=options)
    assert taught in plain.domains[1].train.ids
    assert taught not in clean.domains[1].train.ids
    assert clean.notes == {"duplicates_dropped": 1}
    assert [d.test.ids for d in clean.domains] == [d.test.ids for d in plain.domains]


def test_large_trees_are_looked_through_only_when_asked(copied, monkeypatch, capsys):
    tree, _, _ = copied
    monkeypatch.setattr("fsdil_scenarios.folder._SEARCHED", 39)
    read = []
    monkeypatch.setattr(file_hashes, "_read", read.append)
    monkeypatch.setattr(file_hashes, "_remembered", lambda *_: {})
    assert build(request(tree)).notes == {}
    assert read == []


def test_a_regular_expression_says_which_images_are_one_group(tree):
    def tests(groups):
        return build(ScenarioRequest(data=tree, options=Options(groups=groups))).domains[0].test

    plain = tests("")
    assert plain.groups == ()
    grouped = tests(r"/(\w+)/[0-4]\.")
    assert {"dog", "guinea_pig"} & set(grouped.groups)
    for sample_id, group in zip(grouped.ids, grouped.groups, strict=True):
        folder, name = sample_id.split("/")[1:]
        assert group == (folder if int(name[0]) < 5 else sample_id)
    assert set(tests(r"^photo/dog").groups) >= {"photo/dog"}
    assert grouped.digest() != plain.digest()
    with pytest.raises(RequestError, match="not a regular expression"):
        tests("(")
