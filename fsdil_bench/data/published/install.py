"""Getting a published data set into its folder, and checking that all of it is there.

    <folder>/.fsdil-bench/downloads.json   which downloads are started and which are finished
    <folder>/.fsdil-bench/unpacking        an archive while it is unpacked
    <folder>/.fsdil-bench/lock             one process at a time

A download counts as finished when its content is in place, and not before: after a kill at any
moment the same command does what is left.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from fsdil_bench.data.scenario import ScenarioRequest
from fsdil_bench.data.streams import build_stream, scenario_settings
from fsdil_bench.data.train_test_copies import describe_copies, find_copies
from fsdil_bench.errors import FsdilError, PluginError, RequestError
from fsdil_bench.plugins.descriptors import ScenarioInfo, load_factory
from fsdil_bench.progress import Progress
from fsdil_bench.system.archives import ArchiveError, unpack
from fsdil_bench.system.atomic_files import write_atomically
from fsdil_bench.system.locks import locked

from .download import DownloadError, check, fetch
from .locations import DataSet, ledger_entry
from .sources import Download, Remark


@dataclass(frozen=True)
class Inventory:
    """What is in a data set's folder, and what is wrong with it."""

    problems: list[str]
    files: int = 0
    bytes: int = 0
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.files:,} files, {decimal(self.bytes)}"


def verify(found: DataSet) -> Inventory:
    """Check a data set's folder with its own `verify`, and count what is there."""
    if found.presence() == "absent":
        return Inventory([f"{found.path} is empty or does not exist"])
    inspect = load_factory(found.source.verify, f"verify of data set '{found.name}'")
    try:
        lines = list(inspect(found.path))
    except FsdilError as error:
        lines = [error.message]
    except Exception as error:
        raise PluginError(
            f"verify of data set '{found.name}' raised {type(error).__name__}: {error}",
            "--debug shows the traceback.",
        ) from error
    problems = [str(line) for line in lines if not isinstance(line, Remark)]
    remarks = tuple(str(line) for line in lines if isinstance(line, Remark))
    return Inventory(problems, *_count(found.path), remarks)


def copies_remark(info: ScenarioInfo, found: DataSet) -> tuple[str, ...]:
    """A remark on images that a data set has for training and for testing; all images are read."""
    request = ScenarioRequest(data=found.path, options=scenario_settings(info, {}))
    try:
        copies = find_copies(build_stream(info, request))
    except FsdilError:  # `verify` says what is wrong with the data set
        return ()
    return (describe_copies(copies),) if copies else ()


def get(found: DataSet, progress: Progress | None = None, *, fresh: bool = False) -> None:
    """Download and unpack what is not there yet; `fresh` downloads everything again."""
    progress = progress or Progress()
    with _with_remedies(found), _locked(found):
        wanted = list(found.source.downloads) if fresh else found.pending()
        for download in found.source.downloads:
            if download not in wanted:
                progress.say(f"{download.path}: already there")
        files = [each for each in wanted if each.unpack is None]
        archives = [each for each in wanted if each.unpack is not None]
        _obtain_all(found, files, progress, fresh=fresh)
        # Lists may be all that was missing, where another data set's images are shared.
        if files and archives and not fresh and not verify(found).problems:
            _note_complete(found)
        else:
            _obtain_all(found, archives, progress, fresh=fresh)


def mark_complete(found: DataSet) -> None:
    """Note that a verified data set is complete, however its files were obtained."""
    if found.presence() != "present":
        with _with_remedies(found), _locked(found):
            _note_complete(found)


def _note_complete(found: DataSet) -> None:
    """Complete the ledger and delete what earlier tries left over."""
    for download in found.pending():
        place = found.path / download.path
        leftovers = [place.with_name(place.name + end) for end in (".part", ".part.json")]
        leftovers += [place] if download.unpack is not None else []
        for leftover in leftovers:
            leftover.unlink(missing_ok=True)
    for download in found.source.downloads:
        _note(found, download, ledger_entry(download))


def _obtain_all(
    found: DataSet, downloads: list[Download], progress: Progress, *, fresh: bool
) -> None:
    _check_room(found, downloads)
    for download in downloads:
        _note(found, download, {})
        _obtain(found, download, progress, fresh=fresh)
        _note(found, download, ledger_entry(download))
        if download.unpack is not None:
            (found.path / download.path).unlink(missing_ok=True)
        progress.say(f"{download.path}: done")


def _obtain(found: DataSet, download: Download, progress: Progress, *, fresh: bool) -> None:
    """One download, up to its content being in place."""
    place = found.path / download.path
    was_there = place.is_file() and not fresh
    if was_there:
        # Left by a killed process, or put there by the user.
        try:
            check(place, download, progress)
        except DownloadError as error:
            raise DownloadError(error.message, f"Remove {place} and try again.") from error
        progress.say(f"{download.path}: already there")
    else:
        fetch(download, place, progress)
    if download.unpack is None:
        return
    try:
        unpack(place, found.path / download.unpack, _scratch(found), progress)
    except ArchiveError as error:
        if error.remedy or was_there:  # what the user put there, only the user removes
            raise ArchiveError(error.message, error.remedy or f"Remove {place}.") from error
        place.unlink()
        remedy = "It was removed; the same command fetches it again."
        raise ArchiveError(error.message, remedy) from error


def _check_room(found: DataSet, wanted: list[Download]) -> None:
    """Refuse before the first byte where the known sizes cannot fit.

    Archives go one after the other: at the worst moment all content and one archive are there.
    """
    sizes = {each.path: each.size or 0 for each in wanted}
    largest = max((sizes[each.path] for each in wanted if each.unpack is not None), default=0)
    parts = (found.path / f"{path}.part" for path in sizes)
    have = sum(part.stat().st_size for part in parts if part.is_file())
    needed = sum(sizes.values()) + largest - have
    free = shutil.disk_usage(found.path).free
    if needed > free:
        raise FsdilError(
            f"data set '{found.name}' needs {decimal(needed)}, {found.path} has {decimal(free)}",
            "Make room there, or choose another place with --data or FSDIL_DATA.",
        )


def _note(found: DataSet, download: Download, entry: dict[str, str]) -> None:
    """Write a download into the ledger, which data sets on the same images share."""
    entries = found.entries() | {download.path: entry}
    write_atomically(found.ledger, json.dumps(entries, indent=1, sort_keys=True) + "\n")


def _scratch(found: DataSet) -> Path:
    return found.ledger.with_name("unpacking")


@contextmanager
def _locked(found: DataSet) -> Iterator[None]:
    """Hold the data set for this process; the lock ends with the process that holds it."""
    found.ledger.parent.mkdir(parents=True, exist_ok=True)
    with locked(found.ledger.with_name("lock")) as ours:
        if not ours:
            raise RequestError(
                f"another process is working on {found.path}", "Wait for it, or stop it."
            )
        yield


@contextmanager
def _with_remedies(found: DataSet) -> Iterator[None]:
    """Turn errors into messages that name a remedy: more room, another folder, the homepage."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise FsdilError(
            f"{found.path} cannot be written: {error.strerror or error}",
            "Make room there; the same command continues where this one stopped."
            if full
            else "Choose another place with --data or FSDIL_DATA.",
        ) from error
    except DownloadError as error:
        elsewhere = (
            f"The data set's page is {found.source.homepage}\n"
            f"Files fetched by other means go to {found.path}"
        )
        remedy = "\n".join(part for part in (error.remedy, elsewhere) if part)
        raise DownloadError(error.message, remedy) from error


def _count(folder: Path) -> tuple[int, int]:
    """Files and bytes below a folder, without hidden ones."""
    files = size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                files += 1
                size += (Path(place) / name).lstat().st_size
    return files, size
