"""The size of the cache: its limit, and the commands that show and clear it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.eviction import cache_limit
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.cli import cli
from fsdil_bench.errors import RequestError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", None),
        ("20GB", 20 * 10**9),
        ("1.5 kb", 1500),
        ("2MiB", 2 * 1024**2),
        ("1g", 10**9),
        ("12345", 12345),
    ],
)
def test_limits_as_people_write_them(monkeypatch, text, size):
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", text)
    assert cache_limit() == size


@pytest.mark.parametrize("text", ["much", "-1GB", "1.2.3GB", "5 apples"])
def test_no_size(monkeypatch, text):
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", text)
    with pytest.raises(RequestError, match="no size"):
        cache_limit()


def test_what_was_used_longest_ago_goes_first_in_whichever_file(monkeypatch):
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", "1MB")
    features = ArrayStore(cache_folder() / "features-a.sqlite")
    pictures = ArrayStore(cache_folder() / "pictures-b.sqlite")
    size = 10_000  # doubles: 80 kB, so that twelve are too many
    for i in range(5):
        features.put({f"f{i}": np.full(size, i)})
        pictures.put({f"p{i}": np.full(size, i)})
    features = ArrayStore(cache_folder() / "features-a.sqlite")  # as in the next run
    assert set(features.get(["f0"])) == {"f0"}
    for i in range(4):
        pictures.put({f"q{i}": np.full(size, i)})
    left = {
        *features.get(f"f{i}" for i in range(5)),
        *pictures.get(f"p{i}" for i in range(5)),
        *pictures.get(f"q{i}" for i in range(4)),
    }
    assert {"f0", "f4", "p4", "q0", "q1", "q2", "q3"} <= left
    assert not {"f1", "p0"} & left
    assert sum(path.stat().st_size for path in cache_folder().glob("*.sqlite")) <= 1_000_000


def call(*arguments):
    result = CliRunner().invoke(cli, ["cache", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_info_and_clear(monkeypatch):
    folder = cache_folder()
    for name, count in (("features-a", 3), ("texts-b", 2), ("file-hashes", 1)):
        store = ArrayStore(folder / f"{name}.sqlite")
        store.put({str(i): np.zeros(4) for i in range(count)})
        store.close()
    (folder / "bases" / "abc").mkdir(parents=True)
    (folder / "bases" / "abc" / "state").write_bytes(b"x" * 100)
    (folder / "of-somebody-else").write_text("stays")
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", "2GB")

    facts = json.loads(call("info", "--json"))
    assert [(f["kind"], f["entries"]) for f in facts["files"]] == [
        ("features", 3), ("texts", 2), ("hashes", 1), ("bases", 1),
    ]  # fmt: skip
    assert facts["limit"] == 2 * 10**9
    assert facts["files"][-1]["bytes"] == 100
    assert facts["bytes"] == sum(f["bytes"] for f in facts["files"])
    text = call("info")
    assert "features-a.sqlite" in text
    assert "of 2.0 GB" in text

    [removed] = json.loads(call("clear", "texts", "--json"))
    assert removed["entries"] == 2
    kinds = [f["kind"] for f in json.loads(call("info", "--json"))["files"]]
    assert kinds == ["features", "hashes", "bases"]
    assert "removed 3 files" in call("clear")
    assert json.loads(call("info", "--json"))["files"] == []
    assert [path.name for path in folder.iterdir()] == ["of-somebody-else"]


def test_clear_names_the_kinds():
    result = CliRunner().invoke(cli, ["cache", "clear", "cheese"])
    assert result.exit_code == 2
    assert "features" in result.stderr
