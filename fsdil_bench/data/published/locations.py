"""Where the images of a data set are, and whether they are there at all.

`--data FOLDER` names the data set's own folder. Without it the folder is `$FSDIL_DATA/<data set>`,
or below the user's data folder where `FSDIL_DATA` is not set. A run asks here before anything
slow is imported, so that missing images are reported at once.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fsdil_bench.errors import DataError, PluginError, RequestError, unknown
from fsdil_bench.plugins.descriptors import ScenarioInfo, load_factory
from fsdil_bench.plugins.registry import Registry

from .sources import DataSource, Download

Presence = Literal["absent", "unreadable", "partly downloaded", "present"]


@dataclass(frozen=True)
class DataSet:
    """A published data set on this machine: what it is and where it is, or would be."""

    name: str
    summary: str
    source: DataSource
    path: Path

    @property
    def ledger(self) -> Path:
        """The file that lists started downloads, and the checksums of finished ones."""
        return self.path / ".fsdil-bench" / "downloads.json"

    @property
    def size(self) -> str:
        """How much there is to download, as text; empty where it is unknown."""
        if self.source.size or self.bytes is None:
            return self.source.size
        from rich.filesize import decimal

        return decimal(self.bytes)

    @property
    def bytes(self) -> int | None:
        """How much there is to download, where that is known to the byte."""
        sizes = [download.size for download in self.source.downloads]
        return sum(filter(None, sizes)) if sizes and None not in sizes else None

    def entries(self) -> dict[str, dict[str, str]]:
        """The ledger: by path, an empty entry for a download that is not finished."""
        try:
            ledger = json.loads(self.ledger.read_text(encoding="utf-8"))
            return {path: dict(entry) for path, entry in ledger.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}  # a damaged ledger costs a second download, no more

    def pending(self) -> list[Download]:
        """The downloads whose content is not there, as far as the ledger can tell."""
        entries = self.entries()
        return [each for each in self.source.downloads if self._is_pending(each, entries)]

    def _is_pending(self, download: Download, entries: dict[str, dict[str, str]]) -> bool:
        entry = entries.get(download.path, {})
        if download.unpack is not None:
            return not _is_same(download, entry)
        # A plain file gets its name when it is complete, or from the user.
        is_other = bool(entry) and not _is_same(download, entry)
        return is_other or not (self.path / download.path).is_file()

    def presence(self) -> Presence:
        """Whether the data set seems to be there; only `verify` checks the files themselves."""
        try:
            visible = {entry.name for entry in self.path.iterdir() if entry.name[0] != "."}
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        except OSError:
            return "unreadable"
        if not visible:
            return "absent"
        # A folder for which no download was started was filled by hand, and is taken as it is.
        # Archives alone are not images yet.
        entries = self.entries()
        started = any(each.path in entries for each in self.source.downloads)
        archives = {each.path for each in self.source.downloads if each.unpack is not None}
        if visible <= archives or (started and self.pending()):
            return "partly downloaded"
        return "present"


def ledger_entry(download: Download) -> dict[str, str]:
    """What the ledger keeps of a finished download."""
    return {"url": download.url, "sha256": download.sha256, "md5": download.md5}


def _is_same(download: Download, entry: dict[str, str]) -> bool:
    """By content where that is known: files move, and checksums become known later."""
    now = ledger_entry(download)
    for algorithm in ("sha256", "md5"):
        if now[algorithm] and entry.get(algorithm):
            return now[algorithm] == entry[algorithm]
    return entry.get("url") in (download.url, *download.also)


def data_root() -> Path:
    """The folder above all data sets."""
    given = os.environ.get("FSDIL_DATA")
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("fsdil-bench")) / "data"


def data_set(info: ScenarioInfo, data: str | Path | None = None) -> DataSet:
    """The data set of a scenario that has a source, at `data` or at its usual place."""
    assert info.source is not None
    source = load_factory(info.source, f"the data source of scenario '{info.name}'")
    if not isinstance(source, DataSource):
        raise PluginError(f"the source of scenario '{info.name}' is {source!r}, not a DataSource")
    usual = data_root() / (source.folder or info.name)
    return DataSet(info.name, info.summary, source, Path(data).expanduser() if data else usual)


def named_data_set(registry: Registry, name: str, data: str | Path | None = None) -> DataSet:
    """The data set called `name`."""
    info = registry.scenarios.get(name)
    if info is None:
        known = [each.name for each in registry.scenarios.values() if each.source]
        raise unknown("data set", name, known, "fsdil-bench data list")
    if info.source is not None:
        return data_set(info, data)
    if info.needs_data:
        raise RequestError(
            f"scenario '{name}' reads your own images; there is nothing to get or verify",
            f"Give them to a run: fsdil-bench run --scenario {name}-1shot --data FOLDER ...",
        )
    raise RequestError(
        f"scenario '{name}' needs no data",
        "Run it as it is; `fsdil-bench data list` shows scenarios that do.",
    )


def find_data(info: ScenarioInfo, data: str | Path | None) -> Path:
    """The folder with the images of a scenario that needs some; an error where there are none."""
    if info.source is None:
        if data is None:
            raise RequestError(
                f"scenario '{info.name}' needs images", "Name their folder with --data FOLDER."
            )
        return Path(data).expanduser()
    found = data_set(info, data)
    presence = found.presence()
    if presence != "present":
        raise missing(found, presence, given=data is not None)
    return found.path


def missing(found: DataSet, presence: Presence, *, given: bool) -> DataError:
    """What is missing, where it was expected, and all ways to fix it."""
    what = {
        "partly downloaded": "are only partly downloaded",
        "unreadable": "cannot be read; check the permissions of their folder",
    }.get(presence, "are not there")
    if given:
        origin = "--data"
    elif os.environ.get("FSDIL_DATA"):
        origin = "FSDIL_DATA"
    else:
        origin = "the default; FSDIL_DATA is not set"
    by_hand = "" if found.source.downloads else "by hand"
    licence = f"licence: {found.source.license}"
    terms = "; ".join(part for part in (by_hand, found.size, licence) if part)
    name = found.source.folder or found.name
    return DataError(
        f"the images of scenario '{found.name}' {what}",
        f"  looked in    {found.path}  ({origin})\n"
        f"  get them     {get_command(found, given=given)}  ({terms})\n"
        f"  have them?   --data FOLDER, or FSDIL_DATA=FOLDER with '{name}' in it\n"
        "  no images?   --scenario drawn-1shot runs without any",
    )


def get_command(found: DataSet, *, given: bool) -> str:
    """The command that gets a data set to where it was looked for."""
    command = f"fsdil-bench data get {found.name}"
    return f"{command} --data {shlex.quote(str(found.path))}" if given else command
