"""`fsdil-bench data` and missing data, as a user meets them."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections import namedtuple
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from file_server import FileServer
from PIL import Image
from rich.console import Console
from shapes_plugin import IMAGES

from fsdil_bench import Download, cli
from fsdil_bench.cli.transfer_progress import TransferBars, TransferLines
from fsdil_bench.data.published import (
    download as downloads,
)
from fsdil_bench.data.published import (
    install as data_sets,
)
from fsdil_bench.data.published import (
    locations as data_folders,
)
from fsdil_bench.system import archives

TOY = Path(__file__).parent.parent / "toy_plugin.py"
SHAPES = Path(__file__).parent.parent / "shapes_plugin.py"


def png(number):
    file = io.BytesIO()
    Image.new("RGB", (16, 16), (number * 20, 90, 200)).save(file, "PNG")
    return file.getvalue()


PICTURES = {name: png(number) for number, name in enumerate(IMAGES)}


def archive(pictures=PICTURES):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for name, content in pictures.items():
            zipped.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(downloads, "FIRST_PAUSE", 0)
    files = {"/shapes.zip": archive(), "/names.txt": b"disc\nring\n", "/own.txt": b"own"}
    with FileServer(files) as running:
        monkeypatch.setenv("SHAPES_URL", running.url)
        yield running


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Where the data set `shapes` goes."""
    monkeypatch.setenv("FSDIL_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "shapes"


@pytest.fixture
def call(call):
    return lambda *arguments: call(*arguments, "--plugin", SHAPES)


def state(call, name="shapes"):
    rows = json.loads(call("data", "list", "--json")[1])
    return {row["dataset"]: row for row in rows}[name]["here"]


def fill(folder, names=(*IMAGES, "names.txt")):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(PICTURES.get(name, b"disc\nring\n"))


def test_get_verify_path_and_run(call, server, place):
    assert state(call) == "absent"
    code, out, err = call("data", "get", "shapes")
    assert code == 0, err
    for expected in ("1.2 GB", "CC BY 4.0", "https://example.org/shapes", str(place)):
        assert expected in out.split("OK")[0]
    assert "shapes: OK, 13 files" in out
    assert state(call) == "present"
    assert {p.name for p in place.iterdir()} == {"ink", "chalk", "names.txt", ".fsdil-bench"}
    assert call("data", "verify", "shapes")[:2] == (0, out.splitlines()[-1] + "\n")
    assert call("data", "path", "shapes")[:2] == (0, f"{place}\n")
    code, out, err = call("run", "-m", "toy-means", "-s", "shapes-1shot", "-b", "toy-clip", "-q",
                          "--plugin", TOY)  # fmt: skip
    assert code == 0, err
    assert "ink" in out


def test_what_is_done_is_not_fetched_again(call, server, place):
    call("data", "get", "shapes")
    asked = len(server.requests)
    code, _, err = call("data", "get", "shapes")
    assert code == 0
    assert "nothing to download" in err
    (place / IMAGES[0]).unlink()
    code, out, err = call("data", "get", "shapes")
    assert code == 1
    assert f"{IMAGES[0]} is missing" in out
    assert "--fresh" in err
    assert len(server.requests) == asked
    assert call("data", "get", "shapes", "--fresh")[0] == 0
    assert len(server.requests) == 2 * asked


def test_dry_run_touches_nothing(call, server, place):
    code, out, _ = call("data", "get", "shapes", "--dry-run")
    assert code == 0
    assert f"{server.url}/shapes.zip" in out
    assert str(place / "names.txt") in out
    assert f"{place / 'shapes.zip'}\n  and unpack it into {place}\n" in out
    assert not server.requests
    assert not place.exists()
    fill(place)
    assert "nothing to download" in call("data", "get", "shapes", "--dry-run")[1]


def test_data_option_is_the_data_sets_own_folder(call, server, place, tmp_path):
    own = tmp_path / "my shapes"
    code, _, err = call("data", "get", "shapes", "--data", own)
    assert code == 0, err
    assert (own / IMAGES[0]).is_file()
    assert not place.exists()
    assert call("data", "verify", "shapes", "--data", own)[0] == 0
    assert call("data", "path", "shapes", "--data", own)[0] == 0
    assert call("data", "verify", "shapes")[0] == 1


def test_data_sets_that_share_a_folder(call, server, place):
    call("data", "get", "shapes")
    assert state(call, "shapes-again") == "present"
    assert call("data", "path", "shapes-again")[1] == f"{place}\n"


def stop_at(monkeypatch, module, name, nth, error=KeyboardInterrupt):
    """Raise in the n-th call of a function of a module, and no more after that."""
    real, count = getattr(module, name), iter(range(1, 1000))

    def stopping(*arguments, **options):
        if next(count) == nth:
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, stopping)


@pytest.mark.parametrize(
    ("module", "name", "nth", "again"),
    [
        (downloads, "_read", 1, ["/names.txt"]),
        (downloads, "_read", 3, ["/shapes.zip"]),
        (archives, "_write", 5, []),
        (archives, "_merge", 1, []),
        (shutil, "move", 2, []),
        (data_sets, "_note", 2, []),
        (data_sets, "_note", 4, []),
        (data_sets, "fetch", 2, []),
    ],
)
def test_stopped_at_any_moment_the_same_command_goes_on(
    call, server, place, monkeypatch, module, name, nth, again
):
    stop_at(monkeypatch, module, name, nth)
    code, _, err = call("data", "get", "shapes")
    assert code == 130
    assert "the same command continues" in err
    assert state(call) in ("absent", "partly downloaded")
    assert call("data", "path", "shapes")[0] == 1
    code, _, err = call("run", "-m", "ncm", "-s", "shapes-1shot")
    assert code == 2
    assert "fsdil-bench data get shapes" in err
    code, _, err = call("data", "get", "shapes")
    assert code == 0, err
    assert state(call) == "present"
    assert {p.name for p in place.iterdir()} == {"ink", "chalk", "names.txt", ".fsdil-bench"}
    fetched = [path for path, asked, _ in server.requests if not asked]
    # Of a file that was stopped before its first byte there is nothing to resume.
    assert sorted(fetched) == sorted(["/names.txt", "/shapes.zip", *again])


def test_killed_process(call, server, place):
    half = len(server.files["/shapes.zip"]) // 2
    server.cuts, server.hold = [10, half], threading.Event()  # all of names.txt, half the archive
    command = [sys.executable, "-m", "fsdil_bench", "data", "get", "shapes", "--plugin", SHAPES]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (place / "shapes.zip.part").exists():
        time.sleep(0.01)
    assert "another process is working" in call("data", "get", "shapes")[2]
    process.kill()
    process.wait()
    server.hold.set()
    assert state(call) == "partly downloaded"
    assert call("data", "get", "shapes")[0] == 0


def test_one_process_at_a_time(call, server, place):
    (place / ".fsdil-bench").mkdir(parents=True)
    with (place / ".fsdil-bench" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = call("data", "get", "shapes")
    assert code == 2
    assert "another process is working" in err
    assert not server.requests


def test_archive_put_there_by_hand_is_used(call, server, place):
    place.mkdir(parents=True)
    (place / "shapes.zip").write_bytes(archive())
    assert state(call) == "partly downloaded"
    assert call("data", "get", "shapes")[0] == 0
    assert [path for path, *_ in server.requests] == ["/names.txt"]
    assert not (place / "shapes.zip").exists()


def test_wrong_archive_put_there_by_hand_is_kept(call, server, place):
    place.mkdir(parents=True)
    (place / "shapes.zip").write_bytes(b"not it")
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert f"Remove {place / 'shapes.zip'}" in err
    assert (place / "shapes.zip").read_bytes() == b"not it"


def test_images_that_are_there_are_not_fetched_for_the_sake_of_a_list(call, server, place):
    fill(place, IMAGES)
    code, _, err = call("data", "get", "shapes")
    assert code == 0, err
    assert [path for path, *_ in server.requests] == ["/names.txt"]
    assert state(call) == "present"


def test_a_broken_download_does_not_spoil_what_shares_the_folder(call, server, place, monkeypatch):
    """`shapes-lists` has a list of its own beside the images that were copied by hand."""
    fill(place)
    stop_at(monkeypatch, data_sets, "fetch", 1)
    assert call("data", "get", "shapes-lists")[0] == 130
    assert state(call, "shapes-lists") == "partly downloaded"
    assert state(call, "shapes") == "present"
    assert call("data", "get", "shapes-lists")[0] == 0
    assert state(call, "shapes-lists") == state(call, "shapes") == "present"
    assert [path for path, *_ in server.requests] == ["/own.txt"]


def test_files_copied_over_a_broken_download_count(call, server, place, monkeypatch):
    stop_at(monkeypatch, archives, "_write", 5)
    call("data", "get", "shapes")
    fill(place)
    asked = len(server.requests)
    assert call("data", "get", "shapes")[0] == 0
    assert state(call) == "present"
    assert len(server.requests) == asked
    assert not (place / "shapes.zip").exists()


def test_copy_made_by_hand_needs_no_download(call, server, place):
    fill(place)
    assert state(call) == "present"
    assert call("data", "get", "shapes")[0] == 0
    assert not server.requests
    assert not (place / ".fsdil-bench").exists()


def test_steps_by_hand(call, place):
    code, out, err = call("data", "get", "forms")
    assert code == 1
    assert "1. Ask at https://example.org/forms." in out
    assert "2. Unpack what you get." in out
    assert str(place.with_name("forms")) in out
    assert "<domain>/<class>/<number>.png" in out
    fill(place.with_name("forms"))
    code, out, err = call("data", "get", "forms")
    assert code == 0, err
    assert "OK, 13 files" in out
    assert "1. Ask" not in out


def test_verify_lists_every_problem(call, server, place):
    fill(place, IMAGES[:4])
    code, out, err = call("data", "verify", "shapes")
    assert code == 1
    assert out.splitlines() == [f"  {name} is missing" for name in [*IMAGES[4:], "names.txt"]]
    assert "9 problems" in err


def test_verify_tells_of_copies_but_does_not_mind_them(call, server, place):
    fill(place)
    first, last = place / IMAGES[0], place / IMAGES[-1]
    for path in place.rglob("*.png"):  # the plugin's split is its own: all images are the same
        path.write_bytes(first.read_bytes())
    assert last.read_bytes() == first.read_bytes()
    code, out, _ = call("data", "verify", "shapes")
    assert code == 0
    note, verdict = out.splitlines()
    assert note.startswith("  note: ")
    assert "test images are among the training images too, byte for byte: " in note
    assert verdict.startswith("shapes: OK, 13 files")
    assert call("data", "verify", "shapes", "--quick")[1] == verdict + "\n"


def test_a_download_that_got_another_address_is_not_fetched_again():
    entry = {"url": "http://example.org/a.zip", "sha256": "", "md5": ""}
    moved = Download("https://example.org/a.zip", "a.zip", ".", also=("http://example.org/a.zip",))
    assert data_folders._is_same(moved, entry)
    assert not data_folders._is_same(replace(moved, also=()), entry)


def test_list_as_a_table(call, server, place):
    code, out, err = call("data", "list")
    assert code == 0
    for expected in ("shapes", "1.2 GB", "CC BY 4.0", "download", "by hand", "absent"):
        assert expected in out
    assert str(place.parent) in out
    assert "no_such_module" in err  # a broken source costs only itself


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["get", "shaps"], 2, ["unknown data set 'shaps'", "'shapes'", "data list"]),
        (["get", "drawn"], 2, ["'drawn' needs no data"]),
        (["verify", "drawn"], 2, ["'drawn' needs no data"]),
        (["get", "folder"], 2, ["your own images", "--data"]),
        (["path", "shapes"], 1, ["absent", "fsdil-bench data get shapes"]),
        (["verify", "shapes"], 1, ["not complete", "fsdil-bench data get shapes"]),
        (["verify", "forms"], 1, ["not complete", "steps"]),
        (["get", "broken"], 1, ["broken", "no_such_module"]),
        (["get"], 2, ["NAME"]),
    ],
)
def test_bad_requests_get_one_clear_message(call, server, place, arguments, code, expected):
    got, _, err = call("data", *arguments)
    assert got == code
    for text in expected:
        assert text in err


def test_server_errors(call, server, place):
    del server.files["/shapes.zip"]
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert f"{server.url}/shapes.zip: the server answers 404" in err
    assert "https://example.org/shapes" in err
    assert str(place) in err


def test_damaged_archive_is_fetched_again(call, server, place):
    whole = server.files["/shapes.zip"]
    server.files["/shapes.zip"] = whole[:-40]
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert "shapes.zip is damaged" in err
    server.files["/shapes.zip"] = whole
    assert call("data", "get", "shapes")[0] == 0


def test_unsafe_archive(call, server, place, tmp_path):
    server.files["/shapes.zip"] = archive(PICTURES | {"../../evil": b"evil"})
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert "../../evil" in err
    assert not list(tmp_path.rglob("evil"))
    assert not list(place.rglob("*.png"))


def test_no_network(call, place, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_PAUSE", 0)
    monkeypatch.setenv("SHAPES_URL", "http://host.invalid")
    monkeypatch.setenv("no_proxy", "*")
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert "http://host.invalid/names.txt cannot be reached" in err
    assert "Check the network" in err


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, ["No space left", "Make room"]), (errno.EACCES, ["denied", "--data"])],
)
def test_folder_that_cannot_be_written(call, server, place, monkeypatch, number, expected):
    stop_at(monkeypatch, archives, "_write", 3, OSError(number, os.strerror(number)))
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    for text in (str(place), *expected):
        assert text in err
    assert call("data", "get", "shapes")[0] == 0


def test_folder_that_is_a_file(call, server, place):
    place.parent.write_text("in the way")
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert f"{place} cannot be written" in err


def test_room_is_checked_before_the_first_request(call, server, place, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 5))
    code, _, err = call("data", "get", "shapes")
    assert code == 1
    assert "needs 10 bytes" in err
    assert not server.requests


def test_missing_data_is_said_before_anything_slow(tmp_path):
    """No torch, no backbone; what is missing, where, and every way out."""
    script = (
        "import sys; from fsdil_bench.cli import main\n"
        "try: main()\n"
        "finally: print({'torch', 'open_clip'} & set(sys.modules))"
    )
    arguments = ["run", "-m", "ncm", "-s", "shapes-again-1shot", "--plugin", SHAPES]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path)}
    environment.pop("FSDIL_DATA", None)
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert result.returncode == 2
    assert result.stdout == "set()\n"
    message = result.stderr[result.stderr.index("error: ") :]
    assert len(message.splitlines()) == 5
    for expected in (
        "'shapes-again'",
        str(tmp_path / "fsdil-bench" / "data" / "shapes") + " ",
        "FSDIL_DATA is not set",
        "fsdil-bench data get shapes-again  (1.2 GB; licence: CC BY 4.0)",
        "--data FOLDER",
        "'shapes'",
        "drawn-1shot",
    ):
        assert expected in message


@pytest.mark.parametrize(
    ("scenario", "options", "expected"),
    [
        ("shapes", [], ["(FSDIL_DATA)", "data get shapes  (1.2 GB"]),
        ("shapes", ["--data", "my place"], ["(--data)", "data get shapes --data 'my place'"]),
        ("forms", [], ["data get forms  (by hand; 3 GB; licence: research only)"]),
        ("folder", [], ["--data FOLDER"]),
    ],
)
def test_missing_data_messages(call, place, scenario, options, expected):
    code, _, err = call("run", "-m", "ncm", "-s", f"{scenario}-1shot", *options)
    assert code == 2
    for text in expected:
        assert text in err


def test_the_command_of_the_readme_without_images_or_weights(call, place, monkeypatch):
    """Images are asked for first: what to do about them is five lines, whatever else is missing."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, _, err = call("run", "--method", "cvlc", "--scenario", "core50-1shot")
    assert code == 2
    message = err[err.index("error: ") :].splitlines()
    assert len(message) == 5
    assert "fsdil-bench data get core50" in message[2]


def test_debug_shows_the_traceback():
    command = [sys.executable, "-m", "fsdil_bench", "data", "get", "drawn", "--debug"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_progress_in_a_log_and_in_a_terminal(monkeypatch):
    log, screen = io.StringIO(), io.StringIO()
    monkeypatch.setattr(TransferLines, "LOOK", 600)  # it is told by advancing alone
    lines = TransferLines(log, count(0, 31).__next__)
    bars = TransferBars(Console(file=screen, force_terminal=True, width=80))
    for progress in (lines, bars):
        with progress.phase("fetching a.zip", 4_000_000):
            progress.advance(1_000_000)
            progress.advance(3_000_000)
    assert log.getvalue().splitlines()[:3] == [
        "fetching a.zip (4.0 MB)",
        "fetching a.zip: 1.0 MB (25%)",
        "fetching a.zip: 4.0 MB (100%)",
    ]
    assert "/4.0 MB" in screen.getvalue()


def test_help_on_every_level():
    for path in ("data", "data list", "data get", "data verify", "data path"):
        result = CliRunner().invoke(cli.cli, [*path.split(), "--help"])
        assert result.exit_code == 0
        assert "Example" in result.output


def test_the_page_on_data_is_up_to_date():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    rows = json.loads(CliRunner().invoke(cli.cli, ["data", "list", "--json"]).stdout)
    for row in rows:
        name, how = f"[{row['dataset']}]({row['homepage']})", ", then ".join(row["how"])
        cells = (name, row["size"], row["licence"], how)
        assert f"| {' | '.join(cells)} |" in page
    commands = set(re.findall(r"fsdil-bench data ([a-z]+)", page))
    assert commands == set(cli.data.commands)
