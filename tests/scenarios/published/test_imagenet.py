"""ImageNet-R and ImageNet-C, with the 200 classes cut to a few."""

from __future__ import annotations

import published_trees as trees
import pytest
from fsdil_scenarios import names
from fsdil_scenarios.published import imagenet_c_source, imagenet_r_source

import fsdil_bench
from fsdil_bench import DataError, RequestError, load_stream

CLASSES = ("n01443537", "n01484850", "n01494475")


@pytest.fixture(autouse=True)
def few_classes(monkeypatch):
    texts = {name: names._load("imagenet-r")[name] for name in CLASSES}
    monkeypatch.setattr(names, "_load", lambda _: texts)
    for module in ("imagenet_c_source", "imagenet_r_source"):
        monkeypatch.setattr(f"fsdil_scenarios.published.{module}.class_folders", lambda _: CLASSES)


def few(data_set, tree, shots=1, variant="", **options):
    return load_stream(f"{data_set}-{shots}shot{variant}", data=tree, scenario_options=options)


@pytest.fixture(scope="module")
def renditions(tmp_path_factory):
    """All classes in art and sketch, two of them as toys, one as graffiti."""
    counts = {"art": (9, 9, 9), "sketch": (7, 6, 6), "toy": (6, 0, 6), "graffiti": (2, 0, 0)}
    return trees.imagenet_r(tmp_path_factory.mktemp("r"), CLASSES, counts)


def test_renditions_are_taken_from_the_largest_on(renditions):
    stream = few("imagenet-r", renditions, shots=4, classes=3)
    assert [d.name for d in stream.domains] == ["art", "sketch"]
    assert stream.class_names == ("goldfish", "great white shark", "hammerhead shark")
    more = few("imagenet-r", renditions, classes=2)
    assert [d.name for d in more.domains] == ["art", "sketch", "toy"]
    assert more.class_names == ("goldfish", "hammerhead shark")
    sample = more.domains[2].test.ids[0]
    assert sample.startswith("n01443537/toy_")
    # Other numbers mean that every result on ImageNet-R changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "e39f3c9e79fce97d"


def test_renditions_can_be_named(renditions):
    stream = few("imagenet-r", renditions, renditions="toy, sketch")
    assert [d.name for d in stream.domains] == ["toy", "sketch"]
    with pytest.raises(RequestError, match="no rendition 'opera'") as error:
        few("imagenet-r", renditions, renditions="art,opera")
    assert "art, graffiti, sketch, toy" in error.value.remedy
    with pytest.raises(DataError, match="0 classes have 6 images"):
        few("imagenet-r", renditions, renditions="graffiti")


@pytest.fixture(scope="module")
def corruptions(tmp_path_factory):
    return trees.imagenet_c(tmp_path_factory.mktemp("c"), CLASSES)


def test_a_tested_photograph_is_learned_in_no_domain(corruptions):
    stream = few("imagenet-c", corruptions)
    assert [d.name for d in stream.domains[:3]] == ["clean", "gaussian_noise", "shot_noise"]
    assert len(stream.domains) == 16
    photographs = [{i.partition("/")[2] for i in d.test.ids} for d in stream.domains]
    assert all(those == photographs[0] for those in photographs)
    for domain in stream.domains:
        assert not photographs[0] & {i.partition("/")[2] for i in domain.train.ids}
    assert stream.domains[1].test.groups == stream.domains[0].test.groups
    # Other numbers mean that every result on ImageNet-C changes: raise SPLIT_VERSION then.
    assert trees.choice(stream.domains[0].test) == "37e95bcb750112cd"


def test_severity_and_clean_images(corruptions, tmp_path):
    with pytest.raises(DataError, match="15 of 16 folders are not there"):
        few("imagenet-c", corruptions, severity=5)
    with pytest.raises(RequestError, match="severity"):
        few("imagenet-c", corruptions, severity=6)
    tree = trees.imagenet_c(tmp_path, CLASSES, clean=False)
    with pytest.raises(DataError, match="clean validation images") as error:
        few("imagenet-c", tree)
    assert "@corrupted" in error.value.remedy
    assert few("imagenet-c", tree, variant="@corrupted").domains[0].name == "gaussian_noise"
    image = next((tree / "fog/3").glob("*/*.JPEG"))
    image.rename(image.with_name("other.JPEG"))
    with pytest.raises(DataError, match=r"fog/3' has other images .* in 1 classes"):
        few("imagenet-c", tree, variant="@corrupted")


@pytest.mark.parametrize("data_set", ["imagenet-r", "imagenet-c"])
def test_a_fast_method_runs(data_set, renditions, corruptions, toy_registry, tmp_path):
    tree = renditions if data_set == "imagenet-r" else corruptions
    record = fsdil_bench.run(
        "ncm",
        f"{data_set}-1shot",
        data=tree,
        order=("art", "sketch") if data_set == "imagenet-r" else ("clean", "fog"),
        scenario_options={"classes": 3} if data_set == "imagenet-r" else {},
        backbone="toy-clip",
        registry=toy_registry,
        out=tmp_path,
    )
    assert len(record.matrix[-1]) == 2


def test_verify(renditions, corruptions, monkeypatch):
    monkeypatch.setattr(imagenet_r_source, "IMAGES", 63)
    assert imagenet_r_source.verify(renditions) == ["all classes: 60 images, 63 are published"]
    monkeypatch.setattr(imagenet_c_source, "PER_CLASS", 4)
    lines = imagenet_c_source.verify(corruptions)
    assert len(lines) == 15
    assert all(isinstance(line, fsdil_bench.Remark) for line in lines)
    assert lines[0] == "gaussian_noise: only severity 3"
