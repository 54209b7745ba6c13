"""Unpacking archives from strangers: all of it or nothing, and nothing outside the folder.

Members are written by this module itself, as plain files and folders only; an archive with a
link, a device, a path that leads out, or far more content than its size can explain is refused.
Everything is written to a scratch folder first and moved when it is complete.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from rich.filesize import decimal

from fsdil_bench.errors import FsdilError
from fsdil_bench.progress import Progress

#: Images hardly shrink and text shrinks tenfold; beyond this an archive is a trap.
MAX_RATIO = 100
#: Small archives may hold this much all the same.
ALWAYS_ALLOWED = 64 << 20
MAX_MEMBERS = 5_000_000

_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError,
)  # fmt: skip


class ArchiveError(FsdilError):
    """An archive is damaged or holds what must not be unpacked."""


@dataclass(frozen=True)
class _Member:
    """One entry of an archive; `fault` says why it is neither a plain file nor a folder."""

    name: str
    is_folder: bool
    size: int
    fault: str
    open: Callable[[], IO[bytes] | None]


class _Budget:
    """How much an archive may still unpack to, on this disk and for its size."""

    def __init__(self, archive: Path, place: Path) -> None:
        self._archive = archive
        self._place = place
        self._trap = max(MAX_RATIO * archive.stat().st_size, ALWAYS_ALLOWED)
        self._free = shutil.disk_usage(place).free
        self._bytes = 0
        self._members = 0

    def expect(self, size: int) -> None:
        """Refuse what is known to be too much before it is written."""
        if self._bytes + size > self._trap:
            raise ArchiveError(
                f"{self._archive.name} ({decimal(self._archive.stat().st_size)}) unpacks to more "
                f"than {decimal(self._trap)}, which no honest archive does",
                "It was not unpacked.",
            )
        if self._bytes + size > self._free:
            raise ArchiveError(
                f"{self._archive.name} unpacks to {decimal(self._bytes + size)} or more, "
                f"{self._place} has {decimal(self._free)}",
                "Make room there; the same command continues.",
            )

    def count(self) -> None:
        """One more member."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise ArchiveError(
                f"{self._archive.name} has more than {MAX_MEMBERS} members", "It was not unpacked."
            )

    def spend(self, size: int) -> None:
        """So many bytes more are being written."""
        self.expect(size)
        self._bytes += size


def unpack(archive: Path, target: Path, scratch: Path, progress: Progress | None = None) -> None:
    """Unpack `archive` and merge its content into the folder `target`.

    `scratch` is a folder on the same disk for the time of unpacking; what a killed process left
    there is removed.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        with _explained(archive):
            _extract(archive, scratch, progress or Progress())
        _merge(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _explained(archive: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise ArchiveError(
            f"{archive} is damaged or no archive: {str(error) or type(error).__name__}"
        ) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise ArchiveError(
            f"{archive.name} has a file and a folder of one name: {error.filename}",
            "It was not unpacked.",
        ) from error


def _extract(archive: Path, folder: Path, progress: Progress) -> None:
    budget = _Budget(archive, folder)
    with archive.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    if not is_zip:
        with tarfile.open(archive, "r|*") as tar:  # one pass, whatever the compression
            _write_all(_tar_members(tar), None, archive, folder, budget, progress)
        return
    with zipfile.ZipFile(archive) as zipped:
        members = [_zip_member(zipped, info) for info in zipped.infolist()]
        total = sum(member.size for member in members)
        budget.expect(total)
        _write_all(iter(members), total, archive, folder, budget, progress)


def _write_all(
    members: Iterator[_Member],
    total: int | None,
    archive: Path,
    folder: Path,
    budget: _Budget,
    progress: Progress,
) -> None:
    with progress.phase(f"unpacking {archive.name}", total):
        for member in members:
            if member.fault:
                raise _refused(archive, member.name, member.fault)
            budget.count()
            path = folder / _inside(archive, member.name)
            if member.is_folder:
                path.mkdir(parents=True, exist_ok=True)
                continue
            budget.expect(member.size)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(member, path, budget, progress)


def _write(member: _Member, path: Path, budget: _Budget, progress: Progress) -> None:
    source = member.open()
    assert source is not None  # it is a plain file
    with source, path.open("wb") as file:
        while block := source.read(1 << 18):
            budget.spend(len(block))
            file.write(block)
            progress.advance(len(block))


def _inside(archive: Path, name: str) -> PurePosixPath:
    """The path of a member below the folder."""
    path = PurePosixPath(name.replace("\\", "/"))  # some archivers on Windows write these
    if path.is_absolute() or PureWindowsPath(name).drive:
        raise _refused(archive, name, "an absolute path")
    if ".." in path.parts:
        raise _refused(archive, name, "a path that leads out of the folder")
    return path


def _refused(archive: Path, name: str, fault: str) -> ArchiveError:
    return ArchiveError(
        f"{archive.name} holds {fault}: {name!r}", "That is not safe; it was not unpacked."
    )


def _zip_member(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    kind = stat.S_IFMT(info.external_attr >> 16)  # 0 where the archiver knew no file types
    fault = ""
    if kind == stat.S_IFLNK:
        fault = "a link"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        fault = "a device"
    elif info.flag_bits & 1:
        fault = "an encrypted file"
    return _Member(info.filename, info.is_dir(), info.file_size, fault, partial(zipped.open, info))


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    while (info := tar.next()) is not None:
        fault = ""
        if info.issym() or info.islnk():
            fault = "a link"
        elif not (info.isreg() or info.isdir()):
            fault = "a device"
        content = partial(tar.extractfile, info)
        yield _Member(info.name, info.isdir(), info.size, fault, content)
        tar.members.clear()  # type: ignore[attr-defined]  # it would keep half a million of them


def _merge(source: Path, target: Path) -> None:
    """Move everything below `source` to its place below `target`, whole folders where possible."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        place = target / entry.name
        if entry.is_dir() and place.is_dir():
            _merge(entry, place)
        else:
            shutil.move(entry, place)
