"""Data sets of torchvision and Hugging Face as domains, from files that the tests write."""

from __future__ import annotations

import json
import sys

import numpy as np
import published_trees as trees
import pytest

import fsdil_bench
from fsdil_bench import DataError, RequestError, load_stream

PETS = ("cat", "dog")


@pytest.fixture
def data(tmp_path):
    """MNIST and KMNIST as torchvision keeps them, and a tree of images."""
    root = tmp_path / "data"
    for folder in ("MNIST", "KMNIST"):
        write_idx(root / folder / "raw")
    for number, name in enumerate(PETS):
        for i in range(5):
            trees.write(root / "garden" / name / f"{i}.png", number + i)
    return root


def write_idx(folder):
    folder.mkdir(parents=True)
    labels = np.arange(30, dtype=np.uint8) % 10
    pixels = np.random.default_rng(0).integers(0, 256, (30, 28, 28), np.uint8)
    shape = np.array(pixels.shape, ">u4").tobytes()
    for part in ("train", "t10k"):
        images = b"\0\0\x08\3" + shape + pixels.tobytes()
        (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            b"\0\0\x08\1" + shape[:4] + labels.tobytes()
        )


def sources(data, shots=1, **domains):
    options = {"domains": json.dumps(domains)}
    return load_stream(f"sources-{shots}shot", data=data, scenario_options=options)


def test_a_data_set_of_torchvision_with_its_parts(data, toy_registry, tmp_path):
    domains = {"written": "torchvision:MNIST", "again": "torchvision:MNIST"}
    stream = sources(data, **domains)
    assert [(d.name, len(d.train), len(d.test)) for d in stream.domains] == [
        ("written", 30, 30),
        ("again", 10, 30),
    ]
    assert stream.class_names[:2] == ("0 - zero", "1 - one")
    test = stream.domains[0].test
    assert test.load(test.ids[0]).shape == (28, 28, 3)
    record = fsdil_bench.run(
        "ncm",
        "sources-1shot",
        data=data,
        scenario_options={"domains": json.dumps(domains)},
        backbone="toy-clip",
        registry=toy_registry,
        out=tmp_path / "runs",
    )
    assert len(record.matrix[-1]) == 2


def test_a_tree_of_images_is_split_and_a_tested_image_is_not_learned(data):
    domain = sources(data, garden="torchvision:ImageFolder").domains[0]
    assert np.bincount(domain.test.labels).tolist() == [2, 2]
    assert not set(domain.train.ids) & set(domain.test.ids)
    assert len(domain.train) == 6


def test_a_data_set_that_names_no_classes_has_those_of_the_others(data, monkeypatch):
    monkeypatch.setattr("torchvision.datasets.KMNIST.classes", ())
    domains = {"a": "torchvision:KMNIST", "b": "torchvision:MNIST"}
    assert sources(data, **domains).class_names[9] == "9 - nine"
    alone = sources(data, a="torchvision:KMNIST")
    assert alone.class_names == tuple("0123456789")


def test_different_classes_are_refused(data):
    with pytest.raises(DataError, match="'a' and 'garden' have different classes") as error:
        sources(data, a="torchvision:MNIST", garden="torchvision:ImageFolder")
    assert "same classes" in error.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs the option domains"),
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"a": "MNIST"}', "neither torchvision:<class> nor hf:"),
        ('{"../a": "torchvision:MNIST"}', "cannot be the name of a domain"),
        ('{"a": "torchvision:Nothing"}', "has no data set 'Nothing'"),
        ('{"a": "torchvision:LSUN"}', "unpickles files"),
        ('{"a": "hf:../../elsewhere"}', "leads out of"),
    ],
)
def test_bad_options(data, text, message):
    with pytest.raises(RequestError, match=message) as error:
        load_stream("sources-1shot", data=data, scenario_options={"domains": text})
    assert error.value.remedy


def test_what_is_not_there_is_not_fetched(data, guarded_downloads):
    with pytest.raises(DataError, match="FashionMNIST cannot be opened") as error:
        sources(data, a="torchvision:FashionMNIST")
    assert "download=True" in error.value.remedy
    with pytest.raises(DataError, match="SVHN cannot be opened"):
        sources(data, a="torchvision:SVHN")
    assert guarded_downloads == []


@pytest.fixture
def guarded_downloads(monkeypatch):
    asked = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *given, **more: asked.append(given))
    return asked


@pytest.fixture
def hub(data):
    """Pets in a data set of two parts, with the classes in another order than the tree's."""
    datasets = pytest.importorskip("datasets", reason="needs the extra `hub`")
    features = datasets.Features(
        {"picture": datasets.Image(), "pet": datasets.ClassLabel(names=["Dog", "Cat"])}
    )
    rows = [
        {"picture": {"bytes": trees.image(number), "path": None}, "pet": number % 2}
        for number in range(8)
    ]
    table = datasets.Dataset.from_list(rows, features=features)
    parts = {"train": table.select(range(6)), "validation": table.select(range(6, 8))}
    datasets.DatasetDict(parts).save_to_disk(str(data / "me" / "pets"))
    table.save_to_disk(str(data / "me" / "all"))
    table.remove_columns("pet").save_to_disk(str(data / "me" / "bare"))
    return data


def test_a_data_set_of_hugging_face(hub):
    stream = sources(hub, garden="torchvision:ImageFolder", hub="hf:me/pets", whole="hf:me/all")
    assert stream.class_names == PETS
    _, pets, whole = stream.domains
    assert pets.test.labels.tolist() == [1, 0]  # Dog, Cat
    assert pets.test.load(pets.test.ids[0]).shape == (16, 16, 3)
    assert np.bincount(whole.test.labels).tolist() == [1, 1]
    with pytest.raises(DataError, match="no column of the kind ClassLabel: picture"):
        sources(hub, a="hf:me/bare")
    with pytest.raises(DataError, match="not a data set written by save_to_disk") as error:
        sources(hub, a="hf:me/other")
    assert "load_dataset('me/other')" in error.value.remedy


def test_without_the_library_the_extra_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(RequestError, match="need the package 'datasets'") as error:
        sources(data, a="hf:me/pets")
    assert "fsdil-bench[hub]" in error.value.remedy
