"""Archives are unpacked as a whole or not at all, and never outside their folder."""

from __future__ import annotations

import io
import shutil
import stat
import tarfile
import zipfile
from collections import namedtuple

import pytest

from fsdil_bench.progress import Progress
from fsdil_bench.system import archives
from fsdil_bench.system.archives import ArchiveError, unpack

FILES = {"photos/dog/1.jpg": b"dog" * 1000, "photos/cat/2.jpg": b"cat" * 2000, "list.txt": b""}


def make_zip(path, files, kind=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = ((kind or stat.S_IFREG) | 0o644) << 16
            archive.writestr(info, content)
    return path


def make_tar(path, files, compression="gz", **attributes):
    with tarfile.open(path, f"w:{compression}") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            archive.addfile(info, io.BytesIO(content))
    return path


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def run(tmp_path):
    """Unpack into tmp_path/inner/data and give its files."""

    def run(archive, progress=None):
        unpack(archive, tmp_path / "inner/data", tmp_path / "inner/scratch", progress)
        return tree(tmp_path / "inner/data")

    return run


def test_zip(run, tmp_path):
    assert run(make_zip(tmp_path / "a.zip", FILES)) == FILES
    assert not (tmp_path / "inner/scratch").exists()


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_tar(run, tmp_path, compression):
    assert run(make_tar(tmp_path / "a.tar", FILES, compression)) == FILES


def test_folders_and_windows_separators(run, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("empty/", "")
        archive.writestr("./x/1.jpg", b"1")
        archive.writestr("x\\2.jpg", b"2")
    assert run(tmp_path / "a.zip") == {"x/1.jpg": b"1", "x/2.jpg": b"2"}
    assert (tmp_path / "inner/data/empty").is_dir()


def test_a_tar_that_ends_in_a_zip_is_a_tar(run, tmp_path):
    inner = make_zip(tmp_path / "inner.zip", FILES).read_bytes()
    assert run(make_tar(tmp_path / "a.tar", {"inner.zip": inner}, "")) == {"inner.zip": inner}


def test_merges_with_what_is_there(run, tmp_path):
    place = tmp_path / "inner/data/photos/dog"
    place.mkdir(parents=True)
    (place / "1.jpg").write_bytes(b"old")
    (place / "9.jpg").write_bytes(b"other")
    assert run(make_zip(tmp_path / "a.zip", FILES)) == FILES | {"photos/dog/9.jpg": b"other"}


BAD_NAMES = {
    "../evil": "leads out",
    "photos/../../evil": "leads out",
    "..\\evil": "leads out",
    "/evil": "absolute",
    "C:\\evil": "absolute",
    "\\\\host\\share\\evil": "absolute",
}


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_paths_that_lead_out(run, tmp_path, make, name):
    archive = make(tmp_path / "a", FILES | {name: b"evil"})
    refused(run, archive, tmp_path, BAD_NAMES[name])


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "../../outside"}, "a link"),
        ({"type": tarfile.SYMTYPE, "linkname": "/etc"}, "a link"),
        ({"type": tarfile.LNKTYPE, "linkname": "../../outside"}, "a link"),
        ({"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, "a device"),
        ({"type": tarfile.BLKTYPE}, "a device"),
        ({"type": tarfile.FIFOTYPE}, "a device"),
    ],
)
def test_links_and_devices_in_tars(run, tmp_path, attributes, reason):
    refused(run, make_tar(tmp_path / "a.tar", {"x": b""}, **attributes), tmp_path, reason)


@pytest.mark.parametrize(("kind", "reason"), [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "a device")])
def test_links_and_devices_in_zips(run, tmp_path, kind, reason):
    refused(run, make_zip(tmp_path / "a.zip", {"x": b"/etc"}, kind), tmp_path, reason)


def test_writing_through_a_link_of_the_same_archive(run, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "outside")
        archive.addfile(link)
        file = tarfile.TarInfo("way/evil")
        file.size = 4
        archive.addfile(file, io.BytesIO(b"evil"))
    (tmp_path / "outside").mkdir()
    refused(run, tmp_path / "a.tar", tmp_path, "a link")
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_bombs(run, tmp_path, make, monkeypatch):
    monkeypatch.setattr(archives, "ALWAYS_ALLOWED", 1 << 20)
    archive = make(tmp_path / "a", {"zeros": bytes(8 << 20)})
    assert archive.stat().st_size < 20_000
    refused(run, archive, tmp_path, "no honest archive")


def test_many_small_bombs_in_one_archive(run, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "ALWAYS_ALLOWED", 1 << 20)
    archive = make_tar(tmp_path / "a", {f"zeros{i}": bytes(900_000) for i in range(40)})
    refused(run, archive, tmp_path, "no honest archive")


def test_too_many_members(run, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 5)
    refused(run, make_zip(tmp_path / "a", {str(i): b"" for i in range(6)}), tmp_path, "5 members")


def test_zip_that_lies_about_its_sizes(run, tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"zeros": bytes(1 << 20)})
    content = archive.read_bytes()
    archive.write_bytes(content.replace((1 << 20).to_bytes(4, "little"), b"\x10\0\0\0"))
    refused(run, archive, tmp_path, "damaged")


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_no_room(run, tmp_path, make, monkeypatch):
    usage = namedtuple("usage", "total used free")
    archive = make(tmp_path / "a", FILES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 5000))
    refused(run, archive, tmp_path, "has 5.0 kB")


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_truncated_tar(run, tmp_path, compression):
    archive = make_tar(tmp_path / "a.tar", {"x": bytes(range(256)) * 400}, compression)
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    refused(run, archive, tmp_path, "damaged")


def test_truncated_or_altered_zip(run, tmp_path):
    archive = make_zip(tmp_path / "a.zip", FILES)
    content = archive.read_bytes()
    archive.write_bytes(content[:-30])
    refused(run, archive, tmp_path, "damaged")
    at = content.index(b"1.jpg") + 8
    archive.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
    refused(run, archive, tmp_path, "damaged")


@pytest.mark.parametrize("content", [b"", b"<html>log in</html>", b"PK but not really"])
def test_no_archive_at_all(run, tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    refused(run, tmp_path / "a.zip", tmp_path, "damaged or no archive")


def test_encrypted_zip(run, tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": b"secret"})
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(content)
    refused(run, archive, tmp_path, "encrypted")


def test_a_file_and_a_folder_of_one_name(run, tmp_path):
    refused(run, make_zip(tmp_path / "a.zip", {"x": b"", "x/y": b""}), tmp_path, "of one name")


def refused(run, archive, tmp_path, reason):
    """The archive is refused for that reason, and nothing of it is anywhere."""
    before = tree(tmp_path)
    with pytest.raises(ArchiveError) as caught:
        run(archive)
    assert reason in caught.value.message
    assert tree(tmp_path) == before
    assert not (tmp_path / "inner/scratch").exists()


class StopAt(Progress):
    def __init__(self, count):
        self.left = count

    def advance(self, amount=1):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_stopped_in_the_middle_and_done_again(run, tmp_path):
    archive = make_zip(tmp_path / "a.zip", FILES)
    with pytest.raises(KeyboardInterrupt):
        run(archive, StopAt(2))
    assert not (tmp_path / "inner/data").exists()
    assert run(archive) == FILES


def test_what_a_killed_process_left_is_not_taken_for_content(run, tmp_path):
    left = tmp_path / "inner/scratch/photos/dog/half.jpg"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    assert run(make_zip(tmp_path / "a.zip", FILES)) == FILES
