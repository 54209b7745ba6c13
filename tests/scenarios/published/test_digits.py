from __future__ import annotations

import gzip

import numpy as np
import published_trees as trees
import pytest
from fsdil_scenarios.published import digits_source
from fsdil_scenarios.published.digits_source import IMAGES, SOURCE, verify

import fsdil_bench
from fsdil_bench import DataError, load_stream


def zipped(content):
    """The same bytes at any time, because tests are named after them and workers compare names."""
    return gzip.compress(content, mtime=0)


@pytest.fixture
def tree(tmp_path):
    return trees.digits(tmp_path / "digits")


def test_four_data_sets_with_their_published_splits(tree):
    stream = load_stream("digits-1shot", data=tree)
    assert [d.name for d in stream.domains] == ["mnist", "mnist-m", "svhn", "usps"]
    assert [len(d.train) for d in stream.domains] == [30, 10, 10, 10]
    assert [len(d.test) for d in stream.domains] == [10] * 4
    assert [d.test.load(d.test.ids[0]).shape for d in stream.domains] == [
        (28, 28, 3),
        (16, 16, 3),
        (32, 32, 3),
        (16, 16, 3),
    ]
    for domain in stream.domains:
        assert np.bincount(domain.test.labels).tolist() == [1] * 10


def test_pictures_and_labels_belong_together(tree):
    """The tree has the same strokes in three data sets, and the same order of labels in all."""
    stream = load_stream("digits-1shot", data=tree)
    mnist, _, svhn, usps = (domain.test for domain in stream.domains)
    assert mnist.labels.tolist() == svhn.labels.tolist() == usps.labels.tolist() == [*range(10)]
    for one, two, three in zip(mnist.ids, svhn.ids, usps.ids, strict=True):
        written = mnist.load(one)
        assert np.array_equal(svhn.load(two)[2:-2, 2:-2], written)
        assert np.array_equal(usps.load(three), written[:16, :16])


def test_a_fast_method_runs(tree, tmp_path, toy_registry):
    record = fsdil_bench.run(
        "ncm", "digits-1shot", data=tree, backbone="toy-clip", registry=toy_registry, out=tmp_path
    )
    assert len(record.matrix[-1]) == 4


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("mnist/train-images-idx3-ubyte.gz", b"no gzip", "train-images-idx3.*cannot be read"),
        ("mnist/t10k-labels-idx1-ubyte.gz", zipped(b"\0" * 9), "begin like MNIST's file"),
        ("mnist/t10k-labels-idx1-ubyte.gz", zipped(b"\0\0\x08\1\0\0\0\5a"), "cut short"),
        ("svhn/test_32x32.mat", b"MATLAB", "test_32x32.mat' cannot be read"),
        ("usps/usps.bz2", b"BZ", "usps.bz2' cannot be read"),
        ("mnist_m/mnist_m_test_labels.txt", b"../../x.png 3", "other folders"),
        ("mnist_m/mnist_m_test_labels.txt", b"a.png ten", "not `<image> <label>`"),
        ("mnist_m/mnist_m_test_labels.txt", b"a.png 3", "1 of its 1 images are not there"),
        ("svhn/test_32x32.mat", None, "test_32x32.mat' is not there"),
    ],
)
def test_a_file_that_is_not_as_published(tree, file, content, message):
    if content is None:
        (tree / file).unlink()
    else:
        (tree / file).write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        load_stream("digits-1shot", data=tree).digest()  # which loads pictures
    assert "data verify digits" in error.value.remedy


def test_verify(tree, monkeypatch):
    monkeypatch.setattr(digits_source, "IMAGES", dict.fromkeys(IMAGES, (30, 10)))
    assert verify(tree) == []
    (tree / "usps/usps.t.bz2").unlink()
    monkeypatch.setitem(digits_source.IMAGES, "svhn", (73257, 10))
    assert verify(tree) == [
        "svhn, train: 30 images, 73257 are published",
        f"'{tree / 'usps/usps.t.bz2'}' is not there",
    ]


def test_what_is_fetched_is_what_is_read():
    fetched = {download.path for download in SOURCE.downloads}
    assert fetched == {file for file in SOURCE.layout if not file.startswith("mnist_m")}
    assert all(download.md5 for download in SOURCE.downloads)
