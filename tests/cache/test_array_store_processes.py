"""Several processes at one cache: they compete, are killed, stopped and find damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from store_child import value
from sweep_processes import wait_for

from fsdil_bench.cache import array_store as store_module
from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.claims import claims_at

CHILD = Path(__file__).parent.parent / "store_child.py"


@pytest.fixture
def start():
    """Start children; those that are left at the end are killed."""
    children = []

    def starter(*arguments):
        child = subprocess.Popen(
            [sys.executable, str(CHILD), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        children.append(child)
        return child

    yield starter
    for child in children:
        child.kill()
        child.communicate()


def go(*children):
    for child in children:
        assert child.stdout.readline() == "ready\n", child.stderr.read()
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()


def computed(child):
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, err
    return out.split()


def appear(path):
    wait_for(path.exists)
    time.sleep(0.05)


def stored(path):
    """How many arrays a file holds, while others write into it."""
    address = f"file:{path}?mode=ro"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as file:
        return file.execute("SELECT count(*) FROM arrays").fetchone()[0]
    return 0


def test_processes_share_the_work_and_compute_each_key_once(tmp_path, start):
    children = [start(tmp_path / "s.sqlite", 90, 5, 0.05) for _ in range(3)]
    go(*children)
    shares = [computed(child) for child in children]
    done = sorted(int(key) for share in shares for key in share)
    assert done == list(range(90))
    assert sum(bool(share) for share in shares) > 1
    assert len(ArrayStore(tmp_path / "s.sqlite")) == 90


def test_claims_of_a_killed_process_are_free_at_once(tmp_path, start):
    mark = tmp_path / "mark"
    hanging = start(tmp_path / "s.sqlite", 20, 4, 0, mark)
    go(hanging)
    appear(mark)
    waiting = start(tmp_path / "s.sqlite", 20, 4, 0)
    go(waiting)
    wait_for(lambda: stored(tmp_path / "s.sqlite") == 16)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)  # it has computed all the rest, and waits for these four
    hanging.send_signal(signal.SIGKILL)
    share = computed(waiting)
    assert sorted(share, key=int) == [str(i) for i in range(20)]
    assert set(share[-4:]) == set(mark.read_text().split())


def test_a_process_that_hangs_is_not_waited_for_without_end(tmp_path, start, monkeypatch):
    monkeypatch.setattr(store_module, "_PATIENCE", 0.3)
    mark = tmp_path / "mark"
    hanging = start(tmp_path / "s.sqlite", 4, 4, 0, mark)
    go(hanging)
    appear(mark)
    keys = ["0", "1", "2", "3"]
    found = ArrayStore(tmp_path / "s.sqlite").fill(
        keys, lambda parts: ({key: value(key) for key in part} for part in parts), 2
    )
    assert set(found) == set(keys)
    assert hanging.poll() is None


def test_claims_stay_with_the_process_that_was_copied(tmp_path):
    claims = claims_at(tmp_path / "lock")
    assert claims.take(iter(["1"]), 5) == ["1"]
    child = os.fork()
    if not child:  # where an exception must not run the other tests
        taken = claims_at(tmp_path / "lock").take(iter(["1", "2"]), 5)
        os._exit(0 if taken == ["2"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    claims.release(["1"])


def test_a_killed_writer_leaves_a_sound_file(tmp_path, start):
    path = tmp_path / "s.sqlite"
    for pause in (0, 0.01, 0.03, 0.1, 0.3):
        before = stored(path)
        child = start(path, 2000, 1, 0)
        go(child)
        wait_for(lambda child=child, n=before: stored(path) > n or child.poll() is not None)
        time.sleep(pause)
        child.kill()
        child.wait()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept = ArrayStore(path).get(str(i) for i in range(2000))
    assert kept
    assert all((array == value(key)).all() for key, array in kept.items())


def test_damage_is_mended_while_others_have_the_file_open(tmp_path, capfd):
    """Two stores in two processes see the same damage; the file is put aside once."""
    path = tmp_path / "s.sqlite"
    store = ArrayStore(path)
    store.put({str(i): value(str(i)) for i in range(50)})
    script = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from fsdil_bench.cache.array_store import *\n"
        "store = ArrayStore(Path(sys.argv[1])); assert len(store.get(['1', '2'])) == 2\n"
        "print('open', flush=True); sys.stdin.readline()\n"
        "store.put({'theirs': np.arange(3)}); print(len(store.get(['theirs', 'ours'])), flush=True)"
        "; sys.stdin.readline(); print(len(store.get(['theirs', 'ours'])))"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout.readline() == "open\n"
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))
    assert store.get(["1"]) == {}
    store.put({"ours": np.arange(4)})
    other.stdin.write("\n")
    other.stdin.flush()
    assert other.stdout.readline() == "2\n"
    other.communicate("\n", timeout=240)
    assert other.returncode == 0
    assert set(store.get(["theirs", "ours", "1"])) == {"theirs", "ours"}
    assert capfd.readouterr().err.count("is damaged") == 1
    assert path.with_suffix(".damaged").exists()


def test_eviction_breaks_no_reader(tmp_path, start, monkeypatch):
    """Four processes with a limit far below what they store; all get every array right.

    Who stores while another evicts does not wait, so the last word is that of the next to store.
    """
    monkeypatch.setenv("FSDIL_CACHE_LIMIT", "60kB")
    path = tmp_path / "features-a.sqlite"
    children = [start(path, 400, 10, 0) for _ in range(4)]
    go(*children)
    for child in children:
        computed(child)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store = ArrayStore(path)
    store.put({"400": value("400")})
    assert path.stat().st_size <= 60_000
    assert 0 < len(store) < 400
    assert set(store.get(["400"])) == {"400"}


def test_clear_while_another_process_uses_the_cache(tmp_path, start):
    from fsdil_bench.cache.inventory import clear

    path = tmp_path / "features-a.sqlite"
    child = start(path, 400, 4, 0.03)
    go(child)
    wait_for(lambda: stored(path) > 8)
    [removed] = clear(tmp_path)
    assert removed.entries
    assert path.exists()  # in use: emptied
    assert sorted(computed(child), key=int) == [str(i) for i in range(400)]
    left = ArrayStore(path)
    assert 0 < len(left) < 400
    left.close()
    clear(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_read_only_cache_is_read_and_costs_one_warning(tmp_path_factory):
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp())  # outside pytest's own, which others may not enter
    try:
        for name in ("features-a", "texts-a"):
            store = ArrayStore(folder / f"{name}.sqlite")
            store.put({"1": value("1")})
            store.close()
        folder.chmod(0o555)
        script = (
            "import sys, os; from pathlib import Path; import numpy as np\n"
            "from fsdil_bench.cache.array_store import ArrayStore\n"
            "os.setuid(65534); folder = Path(sys.argv[1])\n"
            "files = ('features-a', 'texts-a', 'new')\n"
            "for store in [ArrayStore(folder / f'{name}.sqlite') for name in files]:\n"
            "    fill = lambda parts: ({k: np.ones(2) for k in part} for part in parts)\n"
            "    found = store.fill(['1', '2'], fill, 1)\n"
            "    print(len(found['1']), len(store.get(['2'])))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True
        )
    finally:
        shutil.rmtree(folder)
    assert done.stdout.split("\n")[:3] == ["16 1", "16 1", "2 1"]
    assert done.stderr.count("warning") == 1
