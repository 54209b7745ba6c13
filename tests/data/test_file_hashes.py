from __future__ import annotations

import os

import pytest

from fsdil_bench import DataError
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.data import file_hashes
from fsdil_bench.data.file_hashes import content_hashes

NAMES = ["a/1.png", "a/2.png", "b/1.png"]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Three files that count as old enough to be remembered."""
    monkeypatch.setattr(file_hashes, "_SETTLED", 0)
    for name in NAMES:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "tree"


@pytest.fixture
def read(monkeypatch):
    """The files that are read, in the order of reading."""
    names = []
    plain = file_hashes._read

    def noted(path):
        names.append("/".join(path.split("/")[-2:]))
        return plain(path)

    monkeypatch.setattr(file_hashes, "_read", noted)
    return names


def test_each_file_is_read_once(root, read):
    first = content_hashes(str(root), NAMES)
    assert sorted(read) == NAMES
    assert len(set(first)) == 3
    assert content_hashes(str(root), NAMES[::-1]) == first[::-1]
    assert len(read) == 3


def test_files_added_to_a_known_folder_are_read_alone(root, read):
    content_hashes(str(root), NAMES[:1])
    content_hashes(str(root), NAMES)
    assert sorted(read) == NAMES
    content_hashes(str(root), NAMES)
    assert sorted(read) == NAMES


def test_a_replaced_file_is_noticed_though_size_and_time_are_the_same(root, read):
    path = root / NAMES[1]
    before, times = content_hashes(str(root), NAMES), path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns
    after = content_hashes(str(root), NAMES)
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert read[3:] == [NAMES[1]]


def test_a_file_that_changed_a_moment_ago_is_not_remembered(root, read, monkeypatch):
    monkeypatch.setattr(file_hashes, "_SETTLED", 10**12)
    content_hashes(str(root), NAMES)
    content_hashes(str(root), NAMES)
    assert len(read) == 6


@pytest.mark.parametrize("harm", ["damaged", "folder"])
def test_a_cache_that_cannot_be_used_costs_time_alone(root, read, harm, capsys):
    first = content_hashes(str(root), NAMES)
    cache = cache_folder() / "image-hashes.sqlite"
    cache.unlink()
    if harm == "folder":
        cache.mkdir()
    else:
        cache.write_bytes(b"no database" * 1000)
    assert content_hashes(str(root), NAMES) == first
    assert len(read) == 6
    assert "image-hashes.sqlite" in capsys.readouterr().err


def test_many_files_are_read_in_threads_and_the_user_is_told(root, monkeypatch, capsys):
    monkeypatch.setattr(file_hashes, "_GROUP", 1)
    monkeypatch.setattr(file_hashes, "_SAVED", 2)
    monkeypatch.setattr(file_hashes, "_LONG", 0)
    first = content_hashes(str(root), NAMES)
    assert "3 of 3" in capsys.readouterr().err
    assert content_hashes(str(root), NAMES) == first
    assert capsys.readouterr().err == ""


def test_missing_and_empty_files_are_errors(root):
    with pytest.raises(DataError, match=r"a/9\.png' is gone"):
        content_hashes(str(root), [*NAMES, "a/9.png"])
    (root / NAMES[0]).write_bytes(b"")
    with pytest.raises(DataError, match=r"a/1\.png' is empty"):
        content_hashes(str(root), NAMES)
