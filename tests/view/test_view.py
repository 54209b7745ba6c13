"""The page while runs are made: what it says, when it is made again, and who may read it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from view_world import served

from fsdil_bench.errors import RequestError
from fsdil_bench.report.leaderboards import write_leaderboards
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.sweeps.states import newest_progress, write_failure
from fsdil_bench.view.activity import activity
from fsdil_bench.view.changes import UnfinishedRuns, look
from fsdil_bench.view.live_board import LiveBoard
from fsdil_bench.view.server import USUAL_PORT, BoardServer


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def board(runs, monkeypatch):
    with served(runs, monkeypatch) as found:
        yield found


@pytest.fixture
def start(runs, made, tmp_path):
    """Write what a run leaves before its end."""
    spec = made.make_record(tmp_path / "elsewhere", "a").spec

    def write(method="begun", seed=0, log="", domains=0, spec=spec):
        folder = runs / "made-1shot" / method / f"seed{seed}-{method}{seed}"
        folder.mkdir(parents=True)
        text = json.dumps(spec | {"method": method, "seed": seed})
        (folder / "spec.json").write_text(text)
        (folder / "log.txt").write_text(log)
        for number in range(domains):
            (folder / f"domain-{number}").mkdir()
            (folder / f"domain-{number}" / "result.json").write_text("{}")
            (folder / f"domain-{number}" / "state.safetensors").write_bytes(b"")
        return folder

    return write


def content(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


# --- The page ---


def test_it_is_the_page_that_leaderboard_writes(board, runs, made, tmp_path):
    records = [made.make_record(runs, name, seed=seed) for name in "ab" for seed in range(2)]
    state = board.wait_for_runs(4)
    status, headers, page = board.ask("/")
    assert status == 200
    assert f'data-version="{state["version"]}"' in page
    write_leaderboards(records, tmp_path / "out")
    written = (tmp_path / "out" / "index.html").read_text()
    assert content(page) == content(written)
    own = written.partition("<body>")[2].partition("<script")[0]
    assert own in page
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert "connect-src" not in written
    assert state["last"]["method"] == records[-1].spec["method"]
    assert state["last"]["time"] == pytest.approx(time.time(), abs=600)


def test_a_new_record_is_a_new_version(board, runs, made):
    before = board.state()["version"]
    made.make_record(runs, "a")
    first = board.wait_for_runs(1)["version"]
    made.make_record(runs, "b")
    second = board.wait_for_runs(2)["version"]
    assert len({before, first, second}) == 3
    shutil.rmtree(runs / "made-1shot")
    assert board.wait_for_runs(0)["version"] == before


def test_nothing_is_made_while_nothing_changes(board, runs, made, start, monkeypatch):
    made.make_record(runs, "a")
    folder = start(log="works\n")
    version = board.wait_for_runs(1)["version"]
    count = []
    monkeypatch.setattr(LiveBoard, "_make", lambda *_: count.append(1))
    for _ in range(5):
        assert board.state()["version"] == version
    # A finished domain is told, and changes no table.
    (folder / "log.txt").write_text("works\ndomain 1 (real): 3 s\n")
    (folder / "domain-0").mkdir()
    (folder / "domain-0" / "result.json").write_text("{}")
    (folder / "domain-0" / "state.safetensors").write_bytes(b"")
    state = board.wait(lambda state: state["started"][0]["domains"] == 1)
    assert state["version"] == version
    assert count == []


def test_a_look_opens_no_file(runs, made, start, monkeypatch):
    made.make_record(runs, "a")
    start(domains=2)
    before = look([runs])

    def refuse(*_, **__):
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("io.open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert look([runs]) == before
    assert len(before.records) == len(before.started) == 1


def test_only_changed_runs_are_read_again(runs, start, monkeypatch):
    start(log="Traceback (most recent call last):\n  x\nOSError: gone\n")
    start("other")
    known = UnfinishedRuns()
    first = known.of(look([runs]))
    assert sorted(run.state for run in first) == ["failed", "incomplete"]
    monkeypatch.setattr("fsdil_bench.view.changes.read_unfinished", None)
    assert known.of(look([runs])) == first
    shutil.rmtree(runs / "made-1shot" / "other")
    assert [run.state for run in known.of(look([runs]))] == ["failed"]


def test_a_record_that_is_half_written_waits(board, runs, made, tmp_path):
    made.make_record(runs, "a")
    board.wait_for_runs(1)
    whole = made.make_record(tmp_path / "elsewhere", "b").folder
    half = runs / "made-1shot" / "b" / whole.name
    half.mkdir(parents=True)
    text = (whole / "record.json").read_text()
    (half / "record.json").write_text(text[: len(text) // 2])
    state = board.wait(lambda state: state["notes"])
    assert state["runs"] == 1
    assert str(half) in state["notes"][0]
    (half / "record.json").write_text(text)
    state = board.wait(lambda state: "predictions" in " ".join(state["notes"]))
    assert state["runs"] == 1
    shutil.copyfile(whole / "predictions.npz", half / "predictions.npz")
    assert board.wait_for_runs(2)["notes"] == []
    assert len(board.said) == len(set(board.said)) >= 2


def test_a_folder_that_is_gone_leaves_the_last_page(board, runs, made):
    made.make_record(runs, "a")
    version = board.wait_for_runs(1)["version"]
    shutil.rmtree(runs)
    state = board.wait(lambda state: state["problem"])
    assert "does not exist" in state["problem"]
    assert state["version"] == version
    assert board.ask("/")[0] == 200
    made.make_record(runs, "a")
    made.make_record(runs, "b")
    assert board.wait_for_runs(2)["problem"] == ""


def test_one_page_is_made_at_a_time_and_blocks_nobody(board, runs, made, monkeypatch):
    going, most, release, make = [], [], threading.Event(), LiveBoard._page

    def slow(self, *arguments):
        going.append(1)
        most.append(len(going))
        release.wait(60)
        going.pop()
        return make(self, *arguments)

    monkeypatch.setattr(LiveBoard, "_page", slow)
    made.make_record(runs, "a")
    board.wait(lambda state: state["making"])
    made.make_record(runs, "b")
    for _ in range(3):
        assert board.state()["runs"] == 0
        assert board.ask("/")[0] == 200
    release.set()
    board.wait_for_runs(2)
    assert set(most) == {1}


def test_after_a_page_that_took_long_there_is_a_pause(board, runs, made, monkeypatch):
    from fsdil_bench.view import live_board

    monkeypatch.setattr(live_board, "_PAUSE", 1e6)
    made.make_record(runs, "a")
    board.wait_for_runs(1)
    made.make_record(runs, "b")
    for _ in range(5):
        assert board.state()["runs"] == 1


# --- What is going on ---

FAILED = "Traceback (most recent call last):\n  File x\nRuntimeError: out of memory\n"
STOPPED = "Traceback (most recent call last):\n  File x\nKeyboardInterrupt\n"


def test_what_became_of_runs(runs, start):
    with RunFolder(start("works", domains=2, log=FAILED)).locked():
        start("failed", 1, log=FAILED)
        start("stopped", 2, log=STOPPED, domains=1)
        killed = start("killed", 3)
        attempt = {"attempt": 1, "reason": "the process was killed by SIGKILL in /home/me/x"}
        write_failure([killed], "made-1shot/killed/seed3-x", [attempt], None)
        never = runs / "made-1shot" / "never" / "seed4-y"
        write_failure([never], "made-1shot/never/seed4-y", [attempt], None)
        found = {run.method: run for run in activity(look([runs]).started)}
    assert next(iter(found)) == "works"
    states = {name: run.state for name, run in found.items()}
    assert states == {
        "works": "running", "failed": "failed", "stopped": "stopped", "killed": "failed",
        "never": "failed",
    }  # fmt: skip
    assert (found["works"].domains, found["works"].of, found["works"].error) == (2, 4, "")
    assert (found["stopped"].domains, found["stopped"].error) == (1, "")
    assert found["failed"].error == "RuntimeError: out of memory"
    assert found["killed"].error == "the process was killed by SIGKILL in x"
    assert (found["never"].scenario, found["never"].seed) == ("made-1shot", "4")


def test_files_of_other_programs_are_no_runs(runs):
    for number, text in enumerate(("[]", "{}", "x", '{"method": 1}')):
        (runs / str(number)).mkdir()
        (runs / str(number) / "spec.json").write_text(text)
    assert activity(look([runs]).started) == []


def test_what_the_process_of_a_sweep_does(runs, start):
    folder = start("works")
    assert newest_progress(folder) == ""
    for sweep, attempt, phase in (("1", 1, "embed"), ("2", 1, "learn"), ("2", 2, "predict")):
        scratch = runs / "sweeps" / "sweep" / sweep / folder.relative_to(runs)
        scratch = scratch / f"attempt-{attempt}"
        scratch.mkdir(parents=True)
        note = {"phase": phase, "done": 1, "total": 4, "pid": 1}
        (scratch / "progress.json").write_text(json.dumps(note))
        os.utime(scratch / "progress.json", (time.time() + attempt, time.time() + attempt))
    assert newest_progress(folder) == "predict 25 %"
    for note in runs.rglob("progress.json"):
        os.utime(note, (1, 1))
    assert newest_progress(folder) == ""  # of a process that is long gone


# --- Who may read it ---


@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org:{port}", "",
             "[::1]", "0.0.0.0:{port}", "127.0.0.1:{port}:80"],
)  # fmt: skip
def test_a_request_for_another_host_is_refused(board, host):
    for path in ("/", "/state"):
        status, headers, text = board.ask(path, Host=host.format(port=board.server.server_port))
        assert status == 403
        assert "html" not in headers["Content-Type"]
        assert board.url in text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_this_machine_may_be_called_so(board, host):
    assert board.ask("/state", Host=host.format(port=board.server.server_port))[0] == 200


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_request_names_one_host(board, hosts):
    port = board.server.server_port
    lines = ["GET / HTTP/1.1", *[f"Host: 127.0.0.1:{port}"] * hosts, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        assert b" 403 " in connection.recv(100)


@pytest.mark.parametrize(
    "path",
    ["/index.html", "/state/", "/../runs", "/%2e%2e/", "/made-1shot/a/record.json",
     "/favicon.ico", "/etc/passwd"],
)  # fmt: skip
def test_there_are_two_paths_and_no_files(board, runs, made, path):
    made.make_record(runs, "a")
    status, _, text = board.ask(path)
    assert (status, text) == (404, "There is nothing here.\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_it_is_only_read(board, method):
    status, headers, _ = board.ask("/", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(("path", "kind"), [("/?x=1", "text/html"), ("/state", "application/json")])
def test_head_is_get_without_content(board, path, kind):
    status, headers, text = board.ask(path, "HEAD")
    assert (status, text) == (200, "")
    assert headers["Content-Type"].startswith(kind)
    assert int(headers["Content-Length"]) > 50


@pytest.mark.parametrize(
    ("path", "method"), [("/", "GET"), ("/state", "GET"), ("/x", "GET"), ("/", "POST")]
)
def test_every_answer_is_kept_to_itself(board, path, method):
    _, headers, _ = board.ask(path, method)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Server"].strip() == "fsdil-bench"
    assert "Access-Control-Allow-Origin" not in headers


def test_no_record_can_end_the_data_of_the_page(board, runs, made):
    nasty = "</script><script>window.hit=1</script>"
    made.make_record(runs, "n", summary=nasty)
    board.wait_for_runs(1)
    page = board.ask("/")[2]
    assert page.count("</script>") == 2
    assert content(page)["sheets"][0]["rows"][0]["summary"] == nasty


# --- The command ---


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "*", "192.168.1.7", "example.org", "127.0.0.2", "127.1", "localhost."]
)
def test_no_other_address_is_served(call, runs, host):
    code, out, err = call("view", "runs", "--host", host, "--port", 0)
    assert (code, out) == (2, "")
    assert f"'{host}' is no address that only this machine can reach" in err
    assert "ssh -L" in err


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]"])
def test_the_addresses_of_this_machine(board, host):
    try:
        server = BoardServer(board.board, host, 0)
    except RequestError as error:
        assert "::1" in host
        pytest.skip(f"this machine has no IPv6: {error.message}")
    with server:
        address = server.socket.getsockname()[0]
        assert address == ("::1" if ":" in host else "127.0.0.1")
        assert (
            server.url == f"http://{'[::1]' if ':' in host else '127.0.0.1'}:{server.server_port}/"
        )


def test_a_port_that_is_in_use(call, runs):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, out, err = call("view", "runs", "--port", port)
    assert (code, out) == (2, "")
    assert err == (
        f"error: port {port} is in use\n"
        "Choose another with --port; --port 0 takes any that is free.\n"
    )


def test_without_a_port_the_usual_one_or_any(board):
    with BoardServer(board.board) as first, BoardServer(board.board) as second:
        assert second.server_port not in (first.server_port, USUAL_PORT)


def test_a_folder_that_is_missing(call, tmp_path):
    for words, name in ((["view"], "runs"), (["view", "nowhere"], "nowhere")):
        code, _, err = call(*words)
        assert code == 2
        assert f"there is no folder '{name}'" in err


def test_a_browser_is_opened_if_asked(call, runs, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(BoardServer, "serve_forever", interrupted)
    code, out, _ = call("view", "--port", 0, "--open")
    assert code == 0
    assert opened == [out.split()[0]]
    assert call("view", "--port", 0)[0] == 0
    assert len(opened) == 1


def test_ctrl_c_ends_it(runs, tmp_path):
    command = [sys.executable, "-m", "fsdil_bench", "view", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "ended\n")
    assert list(runs.iterdir()) == []
