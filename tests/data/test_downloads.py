"""Fetching a file from servers that behave and from servers that do not."""

from __future__ import annotations

import hashlib
import random
import shutil
import socket
from collections import namedtuple
from pathlib import Path
from urllib.request import Request

import pytest
from file_server import FileServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsdil_bench.data.published import download as downloads
from fsdil_bench.data.published.download import DownloadError, fetch
from fsdil_bench.data.published.sources import Download
from fsdil_bench.errors import FsdilError
from fsdil_bench.progress import Progress

CONTENT = random.Random(0).randbytes(200_000)
OTHER = random.Random(1).randbytes(200_000)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with FileServer({"/a.bin": CONTENT}) as running:
        yield running


@pytest.fixture
def waits():
    return []


@pytest.fixture
def get(server, tmp_path, waits):
    """Fetch a.bin into an own folder; gives its bytes."""

    def run(url="", progress=None, **known):
        download = Download(url or server.url + "/a.bin", "a.bin", **known)
        fetch(download, tmp_path / "a.bin", progress, waits.append)
        return (tmp_path / "a.bin").read_bytes()

    return run


class StopAfter(Progress):
    """Stop like Ctrl-C once so many bytes have come."""

    def __init__(self, limit):
        self.left = limit

    def advance(self, amount=1):
        self.left -= amount
        if self.left <= 0:
            raise KeyboardInterrupt


def test_whole_file_in_one_request(get, server, tmp_path):
    known = {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert get(**known) == CONTENT
    assert server.requests == [("/a.bin", "", "")]
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_another_address_is_tried_where_the_first_fails(get, server, waits):
    nowhere = server.url + "/gone.bin"
    assert get(url=nowhere, also=(server.url + "/a.bin",)) == CONTENT
    assert [path for path, _, _ in server.requests] == ["/gone.bin", "/a.bin"]
    with pytest.raises(DownloadError, match=r"other\.bin: the server answers 404"):
        get(url=nowhere, also=(server.url + "/other.bin",))


def test_goes_on_after_a_cut_connection(get, server, waits):
    server.cuts = [70_000, 50_000]
    assert get() == CONTENT
    assert [asked for _, asked, _ in server.requests] == ["", "bytes=70000-", "bytes=120000-"]
    assert {condition for _, _, condition in server.requests[1:]} == {server.etag}
    assert server.sent == len(CONTENT)
    assert waits == [1, 1]  # each try brought something, so the pause does not grow


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, len(CONTENT)), max_size=4), ranges=st.booleans())
def test_cuts_never_change_the_content(tmp_path_factory, cuts, ranges):
    target = tmp_path_factory.mktemp("cut") / "a.bin"
    with FileServer({"/a.bin": CONTENT}, ranges=ranges, cuts=cuts) as server:
        fetch(Download(server.url + "/a.bin", "a.bin"), target, wait=lambda _: None)
    assert target.read_bytes() == CONTENT


def test_a_later_process_goes_on(get, server, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(100_000))
    have = (tmp_path / "a.bin.part").stat().st_size
    assert 0 < have < len(CONTENT)
    assert not (tmp_path / "a.bin").exists()
    assert get() == CONTENT
    assert server.requests[-1] == ("/a.bin", f"bytes={have}-", server.etag)


def test_a_part_that_only_lacks_its_name_is_not_fetched_again(get, server, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(len(CONTENT)))
    with (tmp_path / "a.bin.part").open("ab") as part:
        part.write(CONTENT[part.tell() :])
    assert get() == CONTENT
    assert len(server.requests) == 1


def test_server_without_ranges_starts_over(get, server):
    server.ranges = False
    server.cuts = [70_000]
    assert get() == CONTENT
    assert server.sent == 70_000 + len(CONTENT)


@pytest.mark.parametrize("heeds_if_range", [True, False])
@pytest.mark.parametrize("tags", [("etag", '"two"'), ("modified", "Tue, 02 Jan 2024 00:00:00 GMT")])
def test_a_file_that_changed_meanwhile_is_fetched_anew(get, server, heeds_if_range, tags):
    server.etag, server.modified = "", "Mon, 01 Jan 2024 00:00:00 GMT"
    server.heeds_if_range = heeds_if_range
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(100_000))
    server.files["/a.bin"] = OTHER
    setattr(server, *tags)
    if tags[0] == "etag":
        server.modified = ""
    assert get() == OTHER


def test_a_file_of_another_size_is_another_file(get, server):
    server.etag = ""  # nothing but the size tells
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(100_000))
    server.files["/a.bin"] = OTHER + b"more"
    assert get() == OTHER + b"more"


def test_a_file_shorter_than_the_part(get, server):
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(100_000))
    server.files["/a.bin"] = b"short"
    assert get() == b"short"


def test_weak_tags_are_no_condition(get, server):
    server.etag, server.modified = 'W/"one"', "Mon, 01 Jan 2024 00:00:00 GMT"
    server.cuts = [70_000]
    assert get() == CONTENT
    assert server.requests[1][2] == server.modified


def test_another_address_does_not_go_on_with_the_part(get, server):
    with pytest.raises(KeyboardInterrupt):
        get(progress=StopAfter(100_000))
    server.files["/b.bin"] = OTHER
    assert get(server.url + "/b.bin") == OTHER
    assert server.requests[-1] == ("/b.bin", "", "")


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_wrong_checksum_names_both_and_removes_the_file(get, tmp_path, algorithm):
    expected = hashlib.new(algorithm, OTHER).hexdigest()
    with pytest.raises(DownloadError) as caught:
        get(**{algorithm: expected})
    assert expected in caught.value.message
    assert hashlib.new(algorithm, CONTENT).hexdigest() in caught.value.message
    assert not list(tmp_path.iterdir())


def test_wrong_size_is_noticed_before_anything_is_fetched(get, server, tmp_path):
    with pytest.raises(DownloadError, match=r"200000 bytes[^$]*199999 bytes"):
        get(size=199_999)
    assert not list(tmp_path.iterdir())


def test_not_found_is_not_tried_again(get, server, waits):
    with pytest.raises(DownloadError, match="404"):
        get(server.url + "/gone.bin")
    assert len(server.requests) == 1
    assert not waits


def test_busy_server_is_tried_again_with_growing_pauses(get, server, waits):
    server.statuses = [503, 429, 500]
    assert get() == CONTENT
    assert waits == [1, 2, 4]


def test_server_that_stays_busy(get, server, waits):
    server.statuses = [503] * 50
    with pytest.raises(DownloadError, match="503") as caught:
        get()
    assert len(server.requests) == downloads.TRIES
    assert "same command" in caught.value.remedy


def test_no_connection(get, waits):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(DownloadError, match="Connection refused"):
        get(f"http://127.0.0.1:{port}/a.bin")
    assert waits == [1, 2, 4, 8]


def test_a_web_page_instead_of_the_file(get, server, tmp_path):
    server.content_type = "text/html; charset=utf-8"
    with pytest.raises(DownloadError, match="web page"):
        get()
    assert not list(tmp_path.iterdir())


def test_redirects_are_followed_when_going_on(get, server):
    server.redirects["/moved"] = server.url + "/a.bin"
    server.cuts = [70_000]
    assert get(server.url + "/moved") == CONTENT
    assert server.requests[-1][1] == "bytes=70000-"


def test_only_http_is_read(get, server, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("local")
    with pytest.raises(DownloadError, match="not an http"):
        get(secret.as_uri())
    for elsewhere in (secret.as_uri(), "ftp://127.0.0.1/a.bin"):
        server.redirects["/moved"] = elsewhere
        with pytest.raises(DownloadError):
            get(server.url + "/moved")
    assert not (tmp_path / "a.bin").exists()


def test_no_way_from_an_encrypted_connection_to_a_plain_one():
    follow = downloads._Redirects().redirect_request
    secure = Request("https://example.org/a")
    with pytest.raises(DownloadError, match="insecure"):
        follow(secure, None, 302, "", {}, "http://example.org/a")
    assert follow(secure, None, 302, "", {}, "https://example.org/b").full_url.endswith("/b")


def test_room_is_checked_before_the_first_byte(get, server, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 100))
    with pytest.raises(FsdilError, match=r"200\.0 kB .* 100 bytes"):
        get()
    assert not (tmp_path / "a.bin.part").exists()


def test_paths_of_downloads_stay_in_the_folder():
    for path in ("/etc/a", "../a", "a/../../b"):
        with pytest.raises(ValueError, match="leads out"):
            Download("http://example.org/a", path)
        with pytest.raises(ValueError, match="leads out"):
            Download("http://example.org/a", "a", unpack=path)
    assert Path(Download("http://example.org/a", "x/a").path).name == "a"
