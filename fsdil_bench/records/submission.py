"""Records packed for a pull request: checked, without checkpoints and without private folders.

A submission is a folder or a zip file:

    records/<scenario>/<method>/seed<seed>-<run id>/record.json, predictions.npz
    submission.json    the SHA-256 of every file
    SUBMISSION.md      what to do with it

The same records make the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fsdil_bench import __version__
from fsdil_bench.errors import RecordError, RequestError
from fsdil_bench.system.archives import ArchiveError, unpack
from fsdil_bench.system.atomic_files import drafted

from .checks import Checked
from .identity import run_place
from .record import PREDICTIONS_FILE, RECORD_FILE, Record, content_hash, file_sha256
from .redaction import names_in, without_paths

MANIFEST = "submission.json"
GUIDE = "SUBMISSION.md"
FORMAT = 1

_MAX_ARCHIVE = 1 << 30
_DATE = (1980, 1, 1, 0, 0, 0)  # always the same, so that the bytes are


@dataclass(frozen=True)
class Submission:
    """What was packed, and where.

    `cut` are the records whose absolute paths were cut to their last part; `names` are the places
    that still name this machine or its user.
    """

    path: Path
    records: int
    size: int
    cut: tuple[str, ...]
    names: tuple[str, ...]


def pack(checked: Sequence[Checked], out: Path) -> Submission:
    """Pack checked records into `out`: a zip file if its name ends in .zip, else a folder."""
    if out.exists():
        raise RequestError(f"{out} exists already", "Choose another name with --out.")
    content: dict[str, bytes] = {}
    cut, names, packed = [], [], []
    for each in sorted(checked, key=lambda each: str(each.folder)):
        record, folder = each.record, each.folder
        assert record is not None
        place = record_place(record)
        text, changed = _shareable(folder / RECORD_FILE)
        if content.get(f"{place}/{RECORD_FILE}", text) != text:
            raise RecordError(
                f"two different records of run {record.run_id} were given", "Give one of them."
            )
        content[f"{place}/{RECORD_FILE}"] = text
        content[f"{place}/{PREDICTIONS_FILE}"] = (folder / PREDICTIONS_FILE).read_bytes()
        cut += [str(folder)] if changed else []
        names += [f"{folder}: {found}" for found in names_in(json.loads(text))]
        packed.append(record)
    content[GUIDE] = _guide(packed).encode()
    content[MANIFEST] = _manifest(content).encode()
    (_write_zip if out.suffix == ".zip" else _write_folder)(content, out)
    size = sum(map(len, content.values())) if out.is_dir() else out.stat().st_size
    return Submission(out, len({record_place(r) for r in packed}), size, tuple(cut), tuple(names))


def record_place(record: Record) -> str:
    """The folder of a record in a submission."""
    spec, sealed = record.spec, record.sealed
    place = run_place(spec["scenario"], spec["method"], record.seed, record.run_id, sealed=sealed)
    return f"records/{place}"


def open_archive(archive: Path, target: Path) -> Path:
    """Unpack a submission, whoever made it, below `target`; nothing is written outside it."""
    if archive.stat().st_size > _MAX_ARCHIVE:
        raise RecordError(
            f"{archive} is larger than {_MAX_ARCHIVE >> 30} GB", "Submit fewer records at a time."
        )
    folder = target / archive.stem
    try:
        unpack(archive, folder, target / f"{archive.stem}.scratch")
    except ArchiveError as error:
        raise RecordError(error.message, error.remedy or "Pack or download it again.") from error
    return folder


def manifest_problems(folder: Path) -> list[str]:
    """What does not match the manifest of an unpacked submission; nothing if it has no manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        return []
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["files"]
        due = {str(PurePosixPath(name)): str(digest) for name, digest in listed.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [f"{MANIFEST} cannot be read: {type(error).__name__}: {error}"]
    there = {
        file.relative_to(folder).as_posix(): file
        for file in folder.rglob("*")
        if file.is_file() and file != path
    }
    problems = [
        f"{name} is listed in {MANIFEST} but missing" for name in sorted(set(due) - set(there))
    ]
    problems += [f"{name} is not listed in {MANIFEST}" for name in sorted(set(there) - set(due))]
    for name in sorted(set(due) & set(there)):
        if file_sha256(there[name]) != due[name]:
            problems.append(f"{name} is not the file that {MANIFEST} lists")
    return problems


def _shareable(path: Path) -> tuple[bytes, bool]:
    """The bytes of a record without absolute paths, and whether there were any."""
    original = path.read_bytes()
    values: dict[str, Any] = json.loads(original)
    values["provenance"] = without_paths(values["provenance"])
    if values == json.loads(original):
        return original, False
    if "content_sha256" in values:
        values["content_sha256"] = content_hash(values)
    return (json.dumps(values, indent=1, sort_keys=True) + "\n").encode(), True


def _manifest(content: dict[str, bytes]) -> str:
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(content.items())}
    values = {"format": FORMAT, "made_by": f"fsdil-bench {__version__}", "files": digests}
    return json.dumps(values, indent=1) + "\n"


def _guide(records: Sequence[Record]) -> str:
    lines = sorted(
        {
            f"| {r.spec['scenario']} | {r.spec['method']} | {r.spec['backbone']} "
            f"| {r.seed} | {r.metrics['AA*']:.2f} | {'yes' if r.sealed else 'no'} | {r.run_id} |"
            for r in records
        }
    )
    return _GUIDE.format(rows="\n".join(lines), count=len(lines))


_GUIDE = """\
# Results for fsdil-bench

Records: {count}.

| scenario | method | backbone | seed | AA* | sealed | run id |
|---|---|---|---|---|---|---|
{rows}

To have them on the leaderboards, in a clone of fsdil-bench:

1. `fsdil-bench verify --no-run SUBMISSION` must find no problem (give this folder or zip file).
2. Copy the content of `records/` to `leaderboards/records/`; leave out `submission.json` and this
   file.
3. `fsdil-bench leaderboard leaderboards/records --out leaderboards`
4. Commit on a branch of its own and open a pull request. Say there where the method's code is (a
   plugin package that can be installed, at a fixed version) and how long a run takes on what
   machine: a seed of every row is run again before it is merged.
"""


def _write_folder(content: dict[str, bytes], out: Path) -> None:
    with drafted(out) as draft:
        for name, data in content.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _write_zip(content: dict[str, bytes], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with drafted(out) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, content[name])
