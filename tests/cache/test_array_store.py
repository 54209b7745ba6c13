from __future__ import annotations

import errno
import shutil
import sqlite3
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fsdil_bench.cache.array_store import ArrayStore


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
    store._file.connection.execute("PRAGMA max_page_count = 3")
    store.put({"big": np.zeros(100_000)})
    assert "continuing without" in capsys.readouterr().err
    assert set(store.get(["big"])) == {"big"}  # from memory
    store.put({"more": np.zeros(100_000)})
    assert capsys.readouterr().err == ""
    assert ArrayStore(tmp_path / "s.sqlite").get(["big", "more"]) == {}


def test_several_writers(tmp_path):
    def write(worker):
        store = ArrayStore(tmp_path / "s.sqlite")
        for i in range(20):
            store.put({f"{worker}/{i}": np.full(4, i)})
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(ArrayStore(tmp_path / "s.sqlite")) == 80


def filler(log, offset=0):
    def compute(parts):
        for part in parts:
            log.append(part)
            yield {key: np.full(3, int(key) + offset) for key in part}

    return compute


def test_fill_computes_what_is_missing_in_parts(tmp_path):
    store = ArrayStore(tmp_path / "s.sqlite")
    store.put({"3": np.full(3, 3)})
    log = []
    found = store.fill(["0", "1", "2", "3", "4", "1"], filler(log), 2)
    assert log == [["0", "1"], ["2", "4"]]
    assert {key: int(array[0]) for key, array in found.items()} == {str(i): i for i in range(5)}
    assert store.fill(["4", "3"], filler(log), 2).keys() == {"3", "4"}
    assert len(log) == 2


def test_a_failed_computation_gives_its_claims_back(tmp_path):
    store, log = ArrayStore(tmp_path / "s.sqlite"), []

    def fail(parts):
        next(iter(parts))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.fill(["1", "2"], fail, 1)
    assert set(store.fill(["1", "2"], filler(log), 1)) == {"1", "2"}


def test_threads_of_one_process_share_the_work(tmp_path):
    log, keys = [], [str(i) for i in range(200)]

    def work(worker):
        return ArrayStore(tmp_path / "s.sqlite").fill(keys, filler(log), 4)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert sorted((key for part in log for key in part), key=int) == keys
    assert all((result[key] == int(key)).all() for result in results for key in keys)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE arrays SET data = zeroblob(24) WHERE key = '1'",
        "UPDATE arrays SET dtype = '<q9' WHERE key = '1'",
        "UPDATE arrays SET shape = '7,7' WHERE key = '1'",
        "UPDATE arrays SET shape = CAST(x'ff31' AS TEXT) WHERE key = '1'",
        "UPDATE arrays SET data = NULL WHERE key = '1'",
    ],
)
def test_damaged_entry_is_computed_again_and_replaced(tmp_path, damage):
    store = ArrayStore(tmp_path / "s.sqlite")
    store.put({str(i): np.full(3, i) for i in range(4)})
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        connection.execute(damage)
    log = []
    found = store.fill([str(i) for i in range(4)], filler(log), 2)
    assert log == [["1"]]
    assert all((found[str(i)] == i).all() for i in range(4))
    again = ArrayStore(tmp_path / "s.sqlite").get(["1"])
    assert (again["1"] == 1).all()


def test_a_database_of_another_make_is_put_aside(tmp_path, capsys):
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        connection.execute("CREATE TABLE arrays (name TEXT)")
    store = ArrayStore(tmp_path / "s.sqlite")
    store.put({"a": np.arange(3)})
    assert set(store.get(["a"])) == {"a"}
    assert "is damaged" in capsys.readouterr().err


def test_a_removed_folder_is_made_again(tmp_path):
    store = ArrayStore(tmp_path / "cache" / "s.sqlite")
    store.put({"a": np.arange(3)})
    shutil.rmtree(tmp_path / "cache")
    store.put({"b": np.arange(3)})
    assert set(store.get(["a", "b"])) == {"b"}
    assert set(ArrayStore(tmp_path / "cache" / "s.sqlite").get(["a", "b"])) == {"b"}


def test_without_locks_the_run_goes_on_with_one_warning(tmp_path, capsys, monkeypatch):
    def no_locks(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", no_locks)
    log = []
    for name in ("a", "b"):
        store = ArrayStore(tmp_path / f"{name}.sqlite")
        assert set(store.fill(["1", "2"], filler(log), 1)) == {"1", "2"}
        assert set(store.fill(["1", "2"], filler(log), 1)) == {"1", "2"}  # from memory
    assert len(log) == 4
    assert capsys.readouterr().err.count("warning") == 1


def test_a_cache_of_an_earlier_version_is_read(tmp_path, monkeypatch):
    """Files made before uses were noted: they are read, and their entries can be evicted."""
    path = tmp_path / "features-a.sqlite"
    data = np.arange(2000.0).tobytes()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE arrays "
            "(key TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB, crc INTEGER)"
        )
        rows = [(str(i), "<f8", "2000", data, zlib.crc32(data)) for i in range(300)]
        connection.executemany("INSERT INTO arrays VALUES (?,?,?,?,?)", rows)
    assert len(ArrayStore(path).get(["5", "6"])) == 2
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", "3MB")
    store = ArrayStore(path)
    store.put({"new": np.zeros(10)})
    assert path.stat().st_size <= 3_000_000
    left = set(store.get([*(str(i) for i in range(300)), "new"]))
    assert {"new", "299"} <= left
    assert "0" not in left
