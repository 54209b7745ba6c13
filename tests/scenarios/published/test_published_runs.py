"""Runs from beginning to end on trees in the layouts of the published data sets."""

from __future__ import annotations

import shutil
from functools import partial

import published_trees as trees
import pytest
from fsdil_scenarios.names import dn4il_folders

import fsdil_bench
from fsdil_bench import ScenarioRequest, find_copies
from fsdil_bench.data.streams import build_stream, scenario_settings
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.features import FrozenFeatures

#: What writes a tree of each data set.
DATA_SETS = {
    "core50": partial(trees.core50, frames=3),
    "cddb-hard": partial(trees.cddb, train=dict.fromkeys(trees.CDDB_DOMAINS, (4, 4))),
    "domainnet": partial(trees.domainnet, few={("sketch", "fan"): (7, 2)}),
    "dn4il": partial(
        trees.domainnet, classes=sorted(dn4il_folders(), key=str.lower), train=2, test=1
    ),
    "pacs": partial(trees.pacs, per_class=5, lists="splits"),
    "office-home": partial(trees.office_home, per_class=2),
    "digits": trees.digits,
    "vlcs": trees.vlcs,
}
#: Data sets of many classes, which take a method that trains towers a while.
LARGE = {"core50", "dn4il", "office-home"}
MAYBE_SLOW = [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in DATA_SETS]
SMALL = {"base_epochs": 1, "epochs": 1, "least_views": 2, "synonyms": False}


@pytest.fixture(scope="module")
def tree_of(tmp_path_factory):
    written = {}

    def tree(name):
        if name not in written:
            written[name] = DATA_SETS[name](tmp_path_factory.mktemp(name))
        return written[name]

    return tree


def check(record, stream):
    """The record holds what was learned and tested: the hashes of the stream's samples."""
    domains = record.scenario["domains"]
    assert [d["name"] for d in domains] == [d.name for d in stream.domains]
    assert [d["train_sha256"] for d in domains] == [d.train.digest() for d in stream.domains]
    assert [d["test_sha256"] for d in domains] == [d.test.digest() for d in stream.domains]
    assert record.scenario["transform"]["preset"] == stream.transform
    assert [len(row) for row in record.matrix] == list(range(1, len(domains) + 1))
    assert all(0 <= value <= 100 for row in record.matrix for value in row)
    if stream.unseen:
        assert record.unseen["names"] == [name for name, _ in stream.unseen]
        assert [len(row) for row in record.unseen["matrix"]] == [len(stream.unseen)] * len(domains)


@pytest.mark.parametrize("name", DATA_SETS)
def test_zero_shot(tree_of, name, tmp_path):
    tree = tree_of(name)
    record = fsdil_bench.run(
        "zero-shot", f"{name}-1shot", data=tree, backbone="tiny-clip", out=tmp_path
    )
    check(record, fsdil_bench.load_stream(f"{name}-1shot", data=tree))


def test_a_run_is_identified_by_what_its_images_hold(tmp_path, monkeypatch):
    """A copy of the tree is the same run and embeds nothing; a replaced image is another run."""
    tree = trees.pacs(tmp_path / "tree", per_class=5, lists="splits")
    shutil.copytree(tree, tmp_path / "copy")
    run = partial(fsdil_bench.run, "ncm", "pacs-1shot", backbone="tiny-clip", out=tmp_path / "runs")
    embedded = []
    plain = FrozenFeatures._embed
    monkeypatch.setattr(
        FrozenFeatures, "_embed", lambda *given: embedded.append(len(given[1])) or plain(*given)
    )
    one = run(data=tree)
    assert embedded
    embedded.clear()
    copied = run(data=tmp_path / "copy", fresh=True)
    assert copied.run_id == one.run_id
    assert copied.matrix == one.matrix
    assert not embedded
    tested = fsdil_bench.load_stream("pacs-1shot", data=tree).domains[1].test.ids[0]
    image = tree / tested
    image.write_bytes(trees.image(19, "JPEG").ljust(image.stat().st_size, b"\0"))
    other = run(data=tree)
    assert other.run_id != one.run_id
    assert other.scenario["digest"] != one.scenario["digest"]


@pytest.mark.parametrize("name", DATA_SETS)
def test_copies_of_test_images_are_dropped_if_asked(tree_of, name):
    """The small trees have a few images only, over and over."""
    info = load_registry().scenario(name)
    plain, clean = (
        build_stream(
            info,
            ScenarioRequest(
                data=tree_of(name), options=scenario_settings(info, {"drop_duplicates": drop})
            ),
        )
        for drop in ("false", "true")
    )
    assert find_copies(plain)
    assert not find_copies(clean)
    assert clean.notes["duplicates_dropped"] > 0
    for one, other in zip(plain.domains, clean.domains, strict=True):
        assert one.test.ids == other.test.ids


@pytest.mark.parametrize("name", MAYBE_SLOW)
def test_cvlc(tree_of, name, tmp_path):
    choice = {"data": tree_of(name), "base_limit": 2, "seed": 3}
    record = fsdil_bench.run(
        "cvlc", f"{name}-1shot", backbone="tiny-clip", config=SMALL, out=tmp_path, **choice
    )
    check(record, fsdil_bench.load_stream(f"{name}-1shot", **choice))
    trained = [domain["train"] for domain in record.scenario["domains"]]
    classes = len(record.scenario["classes"])
    assert trained[1:] == [classes] * (len(trained) - 1)
    assert trained[0] <= 2 * classes


@pytest.mark.parametrize("variant", ["core50-2shot@blocks", "core50-1shot@sessions",
                                     "cddb-hard-2shot@balanced"])  # fmt: skip
def test_variants(tree_of, variant, tmp_path):
    choice = {"data": tree_of(variant.rpartition("-")[0])}
    record = fsdil_bench.run("zero-shot", variant, backbone="tiny-clip", out=tmp_path, **choice)
    check(record, fsdil_bench.load_stream(variant, **choice))
