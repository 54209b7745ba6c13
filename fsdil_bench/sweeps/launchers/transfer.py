"""Runs that travel: for nodes that do not share the file system of the sweep.

What a run has finished and the plugin files of its request go to the node as one archive; there the
run has a folder of its own. Run folder, log and outcome come back as another. Archives are unpacked
by `fsdil_bench.system.archives`, which writes nothing outside the folder it is given.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fsdil_bench.records.record import RECORD_FILE
from fsdil_bench.system.archives import unpack

from .launcher import Task

_RUN, _SCRATCH, _PLUGINS = "run", "scratch", "plugins"


def pack_request(task: Task) -> bytes:
    """What the node needs: finished domains and plugin files."""
    files = {f"{_RUN}/{name}": path for name, path in _run_files(task.folder).items()}
    for number, plugin in enumerate(task.request.get("plugins", ())):
        files[f"{_PLUGINS}/{number}/{Path(plugin).name}"] = Path(plugin)
    return _packed(files)


def arrive(task: Task, parcel: bytes, home: Path) -> Task:
    """On the node: the task as it looks in the folder `home`."""
    _unpacked(parcel, home)
    out = home / "out"
    plugins = [
        str(home / _PLUGINS / str(number) / Path(plugin).name)
        for number, plugin in enumerate(task.request.get("plugins", ()))
    ]
    request = {**task.request, "out": str(out)} | ({"plugins": plugins} if plugins else {})
    there = replace(task, request=request, folder=out / task.key, scratch=home / _SCRATCH)
    there.scratch.mkdir()
    there.folder.parent.mkdir(parents=True)
    if (home / _RUN).is_dir():
        (home / _RUN).rename(there.folder)
    there.request_file.write_text(there.to_json(), encoding="utf-8")
    return there


def pack_results(task: Task) -> bytes:
    """On the node: all that the run left."""
    files = {f"{_RUN}/{name}": path for name, path in _run_files(task.folder).items()}
    for path in (task.log, task.outcome_file):
        if path.is_file():
            files[f"{_SCRATCH}/{path.name}"] = path
    return _packed(files)


def take_home(task: Task, parcel: bytes) -> None:
    """Put what came back where it belongs; the record, which makes a run complete, comes last."""
    incoming = task.scratch / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    _unpacked(parcel, incoming)
    task.folder.mkdir(parents=True, exist_ok=True)
    entries = list((incoming / _RUN).glob("*"))
    for entry in sorted(entries, key=lambda entry: entry.name == RECORD_FILE):
        _place(entry, task.folder / entry.name)
    for entry in (incoming / _SCRATCH).glob("*"):
        _place(entry, task.scratch / entry.name)
    shutil.rmtree(incoming, ignore_errors=True)


def _place(entry: Path, target: Path) -> None:
    draft = target.with_name(f"{target.name}.tmp")  # on the target's own disk, then renamed
    _remove(draft)
    shutil.move(entry, draft)
    if draft.is_dir():
        _remove(target)
    draft.replace(target)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _run_files(folder: Path) -> dict[str, Path]:
    """The files of a run that count, by their path in its folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        drafts = any(part.endswith(".tmp") for part in inside.parts)
        if path.is_file() and not drafts and inside.name != ".lock":
            found[inside.as_posix()] = path
    return found


def _packed(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, path in files.items():
            tar.add(path, name, recursive=False)
    return buffer.getvalue()


def _unpacked(parcel: bytes, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    archive = target.with_name(f"{target.name}.tar")
    archive.write_bytes(parcel)
    try:
        unpack(archive, target, target.with_name(f"{target.name}.unpacking"))
    finally:
        archive.unlink()
