"""The fork server: copies that get their order, say how they end, and outlive nobody."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from fsdil_bench.system.fork_server import ForkServer
from fsdil_bench.system.posix import CAN_FORK

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="needs fork")

MODULE = """
import os, time

MORE = None

def preload():
    global READY
    READY = os.getpid()

def preload_more(names):
    global MORE
    MORE = os.getpid(), names

def main(order, descriptors):
    print(order["say"], READY == os.getppid(), len(descriptors), flush=True)
    if order.get("ask"):
        print("more", MORE == (os.getppid(), ["a", "b"]), flush=True)
    time.sleep(order.get("sleep", 0))
    return order.get("code", 0)
"""


@pytest.fixture
def server(tmp_path):
    (tmp_path / "copied.py").write_text(MODULE)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    server = ForkServer(
        "copied", environment=os.environ | {"PYTHONPATH": paths}, log=tmp_path / "log.txt"
    )
    yield server
    server.close()


def start(server, tmp_path, key, *descriptors, **order):
    with (tmp_path / f"{key}.txt").open("wb") as output:
        server.start(key, output.fileno(), *descriptors, order=order)


def gone(pid):
    for _ in range(1000):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.05)
    return False


def all_news(server, count):
    found = []
    while len(found) < count:
        found += server.news(60) or pytest.fail("no news")
    return found


def test_copies_get_their_order_and_their_end_is_reported(server, tmp_path):
    reading, writing = os.pipe()
    start(server, tmp_path, "one", say="hello", code=7)
    start(server, tmp_path, "two", reading, say="goodbye")
    news = all_news(server, 4)
    os.close(reading)
    os.close(writing)
    assert {each.key: each.code for each in news if each.code is not None} == {"one": 7, "two": 0}
    assert (tmp_path / "one.txt").read_text() == "hello True 0\n"
    assert (tmp_path / "two.txt").read_text() == "goodbye True 1\n"
    assert server.news() == []


def test_a_killed_copy_costs_itself_alone(server, tmp_path):
    start(server, tmp_path, "one", say="hello", sleep=600)
    [begun] = all_news(server, 1)
    os.kill(begun.pid, signal.SIGKILL)
    assert all_news(server, 1)[0].code == -signal.SIGKILL
    start(server, tmp_path, "two", say="hello")
    assert [each.code for each in all_news(server, 2)] == [None, 0]


def test_copies_end_with_the_server(server, tmp_path):
    start(server, tmp_path, "one", say="hello", sleep=600)
    [begun] = all_news(server, 1)
    server.close()
    assert gone(begun.pid)


def test_a_server_that_cannot_be_loaded_says_so_in_its_log(tmp_path):
    server = ForkServer("no_such_module", environment=os.environ, log=tmp_path / "log.txt")
    assert server.news(60) == []
    server.close()
    assert not server.alive
    assert "no_such_module" in (tmp_path / "log.txt").read_text()


def test_copies_have_more_once_it_was_asked_for(server, tmp_path):
    start(server, tmp_path, "before", say="a", ask=True)
    server.preload_more({"b", "a"})
    start(server, tmp_path, "after", say="b", ask=True)
    all_news(server, 4)
    assert (tmp_path / "before.txt").read_text().splitlines()[1] == "more False"
    assert (tmp_path / "after.txt").read_text().splitlines()[1] == "more True"
