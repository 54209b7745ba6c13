from __future__ import annotations

import hashlib

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.names import class_folders, dn4il_folders
from fsdil_scenarios.published.domainnet import CLASSES, DROPPED, Options, build, build_dn4il
from fsdil_scenarios.published.domainnet_source import (
    DN4IL_SOURCE,
    IMAGES,
    LIST_SHA256,
    SOURCE,
    verify,
    verify_dn4il,
)

from fsdil_bench import DataError, Remark, ScenarioRequest, load_stream

FEW = {
    ("sketch", "fan"): (7, 2),  # one training image too few
    ("infograph", "t-shirt"): (8, 0),  # no test image
}


def request(tree, **options):
    return ScenarioRequest(data=tree, options=Options(**options))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.domainnet(tmp_path_factory.mktemp("domainnet"), few=FEW)


@pytest.fixture(scope="module")
def stream(tree):
    return build(request(tree))


@pytest.fixture(scope="module")
def dn4il_tree(tmp_path_factory):
    folders = sorted(dn4il_folders(), key=str.lower)
    return trees.domainnet(tmp_path_factory.mktemp("dn4il"), folders, 3, 1, lists="dn4il")


def test_domains_and_classes(stream):
    assert [d.name for d in stream.domains] == list(trees.DOMAINNET_DOMAINS)
    assert stream.class_names == ("aircraft carrier", "cello", "cell phone", "The Mona Lisa")
    assert all(len(words) == 10 for words in stream.synonyms)
    assert stream.transform == "domainnet"


def test_classes_with_too_few_images_anywhere_are_dropped_everywhere(stream):
    assert stream.notes["dropped"] == ["fan", "t-shirt"]
    assert stream.notes["lists_name"] == "6 of 345 classes"
    for domain in stream.domains:
        assert np.bincount(domain.train.labels).tolist() == [8] * 4
        assert np.bincount(domain.test.labels).tolist() == [2] * 4


@pytest.mark.parametrize("shots", [1, 8])
def test_the_filter_does_not_depend_on_the_shots(tree, shots):
    drawn = load_stream(f"domainnet-{shots}shot", data=tree)
    assert len(drawn.class_names) == 4
    assert [len(d.train) for d in drawn.domains] == [32] + [4 * shots] * 5


def test_the_lists_say_what_is_for_training(tree, stream):
    lines = (tree / "clipart_test.txt").read_text().splitlines()
    listed = [line.split()[0] for line in lines if not {"fan", "t-shirt"} & set(line.split("/"))]
    assert list(stream.domains[2].test.ids) == listed
    names = ("aircraft_carrier", "cello", "cell_phone", "The_Mona_Lisa")
    for sample_id, label in zip(listed, stream.domains[2].test.labels, strict=True):
        assert sample_id.split("/")[1] == names[label]


def test_the_same_images_give_the_same_stream_wherever_they_are(tmp_path, stream):
    trees.domainnet(tmp_path / "images", few=FEW, lists="txt")
    assert build(request(tmp_path)).digest() == stream.digest()
    assert trees.choice(stream.domains[0].train) == "d495a7fc8f7bba2a"
    assert trees.choice(stream.domains[5].test) == "11d02542f0ebfbd8"


@pytest.mark.parametrize(
    "order",
    [
        ("The_Mona_Lisa", "aircraft_carrier", "cell_phone", "cello", "fan", "t-shirt"),
        ("aircraft_carrier", "cell_phone", "cello", "fan", "t-shirt", "The_Mona_Lisa"),
        ("aircraft_carrier", "cello", "cell_phone", "fan", "The_Mona_Lisa", "t-shirt"),
    ],
    ids=["capitals first", "any case", "letters only"],
)
def test_labels_in_any_alphabetical_order_are_fine(tmp_path, order):
    tree = trees.domainnet(tmp_path, label_of={name: i for i, name in enumerate(order)})
    assert len(build(request(tree)).class_names) == 6


def test_labels_of_a_part_may_have_gaps(tmp_path):
    labels = dict(zip(trees.DOMAINNET_CLASSES, (0, 65, 66, 103, 302, 328), strict=True))
    stream = build(request(trees.domainnet(tmp_path, label_of=labels)))
    assert sorted(set(stream.domains[1].test.labels.tolist())) == list(range(6))


def test_labels_out_of_order_are_refused(tmp_path):
    labels = dict(zip(trees.DOMAINNET_CLASSES, (1, 0, 2, 3, 4, 5), strict=True))
    tree = trees.domainnet(tmp_path, label_of=labels)
    with pytest.raises(DataError, match="'cello' has the label 0, which should be that of 'airc"):
        build(request(tree))


def test_labels_that_differ_between_lists_are_refused(tree, tmp_path):
    tree = trees.domainnet(tmp_path)
    path = tree / "sketch_test.txt"
    path.write_text(path.read_text().replace(".jpg 3", ".jpg 4"))
    with pytest.raises(DataError, match=r"sketch_test\.txt' gives 'fan' the label 4"):
        build(request(tree))


@pytest.mark.parametrize(
    "line", ["real/fan/x.jpg", "real/fan/x.jpg one", "painting/fan/x.jpg 3", "real/../x.jpg 3"]
)
def test_damaged_lines_are_told_with_their_number(tmp_path, line):
    tree = trees.domainnet(tmp_path)
    path = tree / "real_train.txt"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DataError, match=r"real_train\.txt', line 49: '(real|painting)/"):
        build(request(tree))


def test_a_line_that_names_a_missing_file(tmp_path):
    tree = trees.domainnet(tmp_path)
    (tree / "quickdraw" / "cello" / "quickdraw_002_000003.png").unlink()
    for path in (tree / "real" / "fan").iterdir():
        path.unlink()
    with pytest.raises(
        DataError, match=r"11 of the 360 images that the lists name are not in"
    ) as e:
        build(request(tree))
    assert "data verify domainnet" in e.value.remedy


def test_files_of_dropped_classes_need_not_be_there(tmp_path, stream):
    tree = trees.domainnet(tmp_path, few=FEW)
    (tree / "real" / "fan" / "real_004_000000.jpg").unlink()
    assert build(request(tree)).digest() == stream.digest()


def test_a_tree_with_too_few_images_of_every_class(tmp_path):
    tree = trees.domainnet(tmp_path, train=7)
    with pytest.raises(DataError, match=r"none of the 6 classes .* has 8 training images"):
        build(request(tree))


def test_an_image_for_training_and_for_testing_is_refused(tmp_path):
    tree = trees.domainnet(tmp_path)
    line = (tree / "real_train.txt").read_text().splitlines()[0]
    with (tree / "real_test.txt").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match="1 images more than once"):
        build(request(tree))


def test_missing_folders_and_lists(tmp_path):
    with pytest.raises(DataError, match="is not a folder"):
        build(request(tmp_path / "nowhere"))
    tree = trees.domainnet(tmp_path)
    (tree / "sketch_test.txt").unlink()
    with pytest.raises(DataError, match=r"lacks 1 of the 12 lists of domainnet: sketch_test\.txt"):
        build(request(tree))
    for path in tree.glob("*.txt"):
        path.unlink()
    with pytest.raises(DataError, match="has none of the 12 lists of domainnet"):
        build(request(tree))
    (tree / "infograph").rename(tree / "other")
    with pytest.raises(DataError, match="lacks 1 of the 6 folders of domainnet: infograph"):
        build(request(tree))


@pytest.fixture(scope="module")
def all_classes(tmp_path_factory):
    """Lists of all 345 classes in which the paper's 39 have too few images; no image is there."""
    root = tmp_path_factory.mktemp("complete")
    for domain in trees.DOMAINNET_DOMAINS:
        (root / domain).mkdir()
        for part, count in (("train", 8), ("test", 1)):
            lines = []
            for label, name in enumerate(class_folders("domainnet")):
                few = name in DROPPED and (domain, part) == ("painting", "train")
                lines += [
                    f"{domain}/{name}/{domain}_{label + 1:03}_{part}{i}.jpg {label}\n"
                    for i in range(count - few)
                ]
            (root / f"{domain}_{part}.txt").write_text("".join(lines))
    return root


def test_the_published_classes_are_345_of_which_306_stay():
    folders = class_folders("domainnet")
    assert len(folders) == CLASSES == 345
    assert len(set(DROPPED)) == 39
    assert set(DROPPED) < set(folders)


def test_the_complete_lists_must_drop_what_the_paper_drops(all_classes):
    # The check of the classes is passed, and the missing images are what is refused.
    with pytest.raises(DataError, match="16524 of the 16524 images"):
        build(request(all_classes))


def test_complete_lists_that_drop_others_are_refused(all_classes, tmp_path):
    for path in all_classes.iterdir():
        if path.is_file():
            text = path.read_text()
            if path.name == "painting_train.txt":
                text = text.replace("painting/zebra/painting_344_train0.jpg 343\n", "")
                text += "painting/fan/painting_110_more.jpg 109\n"
            (tmp_path / path.name).write_text(text)
        else:
            (tmp_path / path.name).mkdir()
    with pytest.raises(DataError, match="only the lists drop: zebra; only the paper drops: fan"):
        build(request(tmp_path))
    with pytest.raises(DataError, match="16524 of the 16524 images"):
        build(request(tmp_path, strict=False))


def test_dn4il_by_its_own_lists(dn4il_tree):
    stream = load_stream("dn4il-2shot", data=dn4il_tree)
    assert len(stream.class_names) == 100
    assert [len(d.train) for d in stream.domains] == [300] + [200] * 5
    assert all(np.bincount(d.test.labels).tolist() == [1] * 100 for d in stream.domains)
    assert stream.notes["lists"] == "DN4IL's own"
    assert stream.transform == "domainnet"


def test_dn4il_by_the_lists_of_domainnet(tmp_path):
    folders = sorted([*dn4il_folders(), "fan", "zigzag"], key=str.lower)
    tree = trees.domainnet(tmp_path, folders, 2, 1)
    stream = build_dn4il(ScenarioRequest(data=tree))
    assert len(stream.class_names) == 100
    assert not {"fan", "zigzag"} & {i.split("/")[1] for i in stream.domains[0].train.ids}
    assert stream.notes["lists"] == "DomainNet's, all images"
    assert "no lists of DN4IL" in verify_dn4il(tree)[0]


def test_dn4il_does_not_fall_back_from_its_own_lists_if_one_is_missing(tmp_path):
    folders = sorted(dn4il_folders(), key=str.lower)
    tree = trees.domainnet(tmp_path, folders, 2, 1)
    (tree / "dn4il").mkdir()
    (tree / "real_train.txt").rename(tree / "dn4il" / "real_train.txt")
    with pytest.raises(DataError, match="dn4il' lacks 11 of the 12 lists of dn4il"):
        build_dn4il(ScenarioRequest(data=tree))


def test_dn4il_with_a_class_missing(tmp_path):
    folders = sorted(set(dn4il_folders()) - {"zebra"}, key=str.lower)
    tree = trees.domainnet(tmp_path, folders, 2, 1)
    with pytest.raises(DataError, match="lack 1 of the 100 classes of DN4IL: zebra"):
        build_dn4il(ScenarioRequest(data=tree))


def test_verify(tmp_path, monkeypatch):
    tree = trees.domainnet(tmp_path, few={("real", "fan"): (7, 2)})
    counts = dict.fromkeys(IMAGES, (48, 12)) | {"real": (47, 12)}
    for name, value in (("IMAGES", counts), ("CLASSES", 6), ("DROPPED", ("fan",))):
        monkeypatch.setattr(f"fsdil_scenarios.published.domainnet_source.{name}", value)
    monkeypatch.setattr("fsdil_scenarios.published.domainnet_source.LIST_SHA256", {})
    assert verify(tree) == []
    (tree / "clipart" / "cello" / "clipart_002_000000.jpg").unlink()
    (tree / "sketch" / "cello" / "sketch_002_000000.jpg").write_bytes(b"")
    path = tree / "real_train.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    lines = verify(tree)
    assert lines[0] == "real_train.txt: 46 images, 47 are published"
    assert "2 classes have too few images" in lines[1]
    assert "differ in aircraft_carrier" in lines[1]
    assert lines[2] == "sketch/cello: empty files: 1, for instance sketch_002_000000.jpg"
    assert lines[3].startswith("clipart_train.txt: 1 of 48 images are not there: clipart/cello/")
    assert len(lines) == 4


def test_lists_that_are_not_as_published_are_remarked_on(tmp_path, monkeypatch):
    tree = trees.domainnet(tmp_path, lists="txt")
    known = {
        f"{part}.txt": hashlib.sha256((tree / "txt" / f"{part}.txt").read_bytes()).hexdigest()
        for part in ("real_test", "sketch_train")
    }
    monkeypatch.setattr("fsdil_scenarios.published.domainnet_source.LIST_SHA256", known)
    assert not [line for line in verify(tree) if isinstance(line, Remark)]
    path = tree / "txt" / "sketch_train.txt"
    path.write_bytes(path.read_bytes() + b"\n")
    assert [line for line in verify(tree) if isinstance(line, Remark)] == [
        "sketch_train.txt: the list is not as published; its checksum differs"
    ]


def test_verify_dn4il(dn4il_tree):
    lines = verify_dn4il(dn4il_tree)
    assert len(lines) == 12  # of other lists than the published ones
    assert all(isinstance(line, Remark) and "checksum" in line for line in lines)


def test_verify_is_short_even_if_everything_is_gone(tmp_path):
    tree = trees.domainnet(tmp_path)
    for path in tree.glob("*/*/*.*"):
        path.write_bytes(b"")
    lines = [line for line in verify(tree) if "empty" in line]
    assert len(lines) == 11
    assert lines[-1] == "... and 26 more: empty files"


def test_sources_name_every_archive_and_list():
    assert {k: sum(v) for k, v in IMAGES.items()} == {
        "real": 172_947, "painting": 72_266, "clipart": 48_129, "sketch": 69_128,
        "quickdraw": 172_500, "infograph": 51_605,
    }  # fmt: skip
    lists = {f"{d}_{p}.txt" for d in trees.DOMAINNET_DOMAINS for p in ("train", "test")}
    archives = {f"{d}.zip" for d in trees.DOMAINNET_DOMAINS}
    assert {download.path for download in SOURCE.downloads} == lists | archives
    own = {f"dn4il/{name}" for name in lists}
    assert {download.path for download in DN4IL_SOURCE.downloads} == own | archives
    assert DN4IL_SOURCE.folder == "domainnet"


def test_downloads_are_encrypted_first_and_lists_are_checked():
    for download in SOURCE.downloads:
        assert download.url.startswith("https://csr.bu.edu/ftp/visda/2019/multi-source/")
        assert download.also == (download.url.replace("https", "http", 1),)
    checked = {each.path: each.sha256 for each in SOURCE.downloads if each.sha256}
    assert checked == LIST_SHA256
    assert len(checked) == 10
    own = [each for each in DN4IL_SOURCE.downloads if each.path.startswith("dn4il/")]
    assert all(len(each.sha256) == 64 for each in own)
    assert len({each.sha256 for each in own}) == 12
