from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fsdil_bench.store import ArrayStore


def test_round_trip(tmp_path):
    store = ArrayStore(tmp_path / "deep" / "s.sqlite")
    arrays = {
        f"k{i}": np.random.default_rng(i).random((2, i + 1)).astype("f4") for i in range(1200)
    }
    store.put(arrays)
    store.close()
    found = ArrayStore(tmp_path / "deep" / "s.sqlite").get([*arrays, "absent"])
    assert set(found) == set(arrays)
    assert all((found[k] == arrays[k]).all() and found[k].dtype == "f4" for k in arrays)


def test_damaged_entry_counts_as_missing(tmp_path):
    store = ArrayStore(tmp_path / "s.sqlite")
    store.put({"a": np.arange(3), "b": np.arange(4)})
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        connection.execute("UPDATE arrays SET data = zeroblob(24) WHERE key = 'a'")
    assert set(store.get(["a", "b"])) == {"b"}


def test_damaged_file_is_put_aside(tmp_path, capsys):
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"this is no database" * 100)
    store = ArrayStore(path)
    store.put({"a": np.arange(3)})
    assert len(store) == 1
    assert path.with_suffix(".damaged").exists()
    assert "damaged" in capsys.readouterr().err


def test_unusable_folder_costs_the_cache_only(tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    store = ArrayStore(tmp_path / "file" / "s.sqlite")
    store.put({"a": np.arange(3)})
    assert "nothing is cached" in capsys.readouterr().err


def test_full_disk_costs_the_cache_only(tmp_path, capsys):
    store = ArrayStore(tmp_path / "s.sqlite")
    store._connection.execute("PRAGMA max_page_count = 3")
    store.put({"big": np.zeros(100_000)})
    assert "going on without" in capsys.readouterr().err
    assert store.get(["big"]) == {}


def test_several_writers(tmp_path):
    def write(worker):
        store = ArrayStore(tmp_path / "s.sqlite")
        for i in range(20):
            store.put({f"{worker}/{i}": np.full(4, i)})
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(ArrayStore(tmp_path / "s.sqlite")) == 80
