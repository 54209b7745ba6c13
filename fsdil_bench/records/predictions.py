"""Reading predictions.npz, whoever wrote it: bounded in size, never unpickled.

The record says which arrays there are and how long they are. Names, types and lengths are compared
with that before anything is unpacked.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from .files import read_regular

if TYPE_CHECKING:
    from .record import Record

PREDICTIONS_FILE = "predictions.npz"

_MAX_BYTES = 256 << 20  # packed and unpacked; those of DomainNet have about ten million
_LONGEST_HEADER = 4096  # bytes before the numbers of an array; usual ones have 128
_MAY_BE_ABSENT = {"groups"}


@dataclass(frozen=True)
class Predictions:
    """The arrays of a file with the file's hash; empty if there are `problems`."""

    digest: str = ""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_predictions(record: Record) -> Predictions:
    """The predictions of a record from its folder, or what is wrong with the file."""
    assert record.folder is not None
    path = record.folder / PREDICTIONS_FILE
    try:
        data = read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        return Predictions(problems=(f"{PREDICTIONS_FILE} is missing",))
    except (OSError, ValueError) as error:
        return Predictions(problems=(_unreadable(error, path),))
    digest = hashlib.sha256(data).hexdigest()
    due = {name: (length, limit) for name, length, limit in due_arrays(record)}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if problems := _member_problems(archive, due):
                return Predictions(digest, problems=problems)
            arrays = {
                name: _read_array(archive, name, length)
                for name, (length, _) in due.items()
                if f"{name}.npy" in archive.NameToInfo
            }
    except _WrongArrayError as error:
        return Predictions(digest, problems=(str(error),))
    except Exception as error:  # damaged bytes make zipfile and zlib fail in many ways
        return Predictions(digest, problems=(_unreadable(error, path),))
    outside = tuple(
        f"{name} in {PREDICTIONS_FILE} holds ids outside 0 to {due[name][1] - 1}"
        for name, array in arrays.items()
        if not 0 <= array.min() <= array.max() < due[name][1]
    )
    return Predictions(digest, {} if outside else arrays, outside)


def due_arrays(record: Record) -> Iterator[tuple[str, int, int]]:
    """Name, length and number of ids of every array that belongs to a record."""
    classes = len(record.scenario["classes"])
    tests = record.test_counts
    yield "labels", sum(tests), classes
    yield "domains", sum(tests), len(tests)
    yield "groups", sum(tests), sum(tests)
    for t in range(len(tests)):
        seen = sum(tests[: t + 1])
        yield f"classes_{t}", seen, classes
        if record.routing is not None:
            yield f"routed_{t}", seen, t + 1
            yield f"oracle_{t}", seen, classes
    if sizes := [each["test"] for each in record.scenario.get("unseen", ())]:
        yield "unseen_labels", sum(sizes), classes
        yield "unseen_sets", sum(sizes), len(sizes)
        for t in range(len(tests)):
            yield f"unseen_classes_{t}", sum(sizes), classes
            if record.routing is not None:
                yield f"unseen_routed_{t}", sum(sizes), t + 1


class _WrongArrayError(ValueError):
    """An array of another type or length than the record says."""


def _member_problems(archive: zipfile.ZipFile, due: Mapping[str, object]) -> tuple[str, ...]:
    """What the list of contents says, before anything is unpacked."""
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if size > _MAX_BYTES:
        text = f"unpacks to {size:,} bytes, more than any predictions need"
        return (f"{PREDICTIONS_FILE} cannot be read: it {text}",)
    there = {member.filename.removesuffix(".npy") for member in members}
    problems = []
    if absent := sorted(set(due) - there - _MAY_BE_ABSENT):
        problems.append(f"{PREDICTIONS_FILE} lacks {_some(absent)}")
    if unknown := sorted(there - set(due)):
        problems.append(f"{PREDICTIONS_FILE} holds unknown {_some(unknown)}")
    if len(members) > len(there):
        problems.append(f"{PREDICTIONS_FILE} holds an array twice")
    return tuple(problems)


def _read_array(archive: zipfile.ZipFile, name: str, length: int) -> np.ndarray:
    with archive.open(f"{name}.npy") as file:
        shape, dtype = _parse_header(_read_header(file))
        if dtype.kind != "i" or shape != (length,):
            raise _WrongArrayError(
                f"{name} in {PREDICTIONS_FILE} is {dtype} of shape {shape}, not {length} integers"
            )
        data = file.read(length * dtype.itemsize)
        if len(data) < length * dtype.itemsize or file.read(1):
            raise ValueError(f"{name} has another size than its header says")
    return np.frombuffer(data, dtype)


def _read_header(file: IO[bytes]) -> bytes:
    """The bytes before the numbers: magic string, version, length of the header, the header."""
    start = file.read(10)
    wide = start[6:7] in (b"\x02", b"\x03")  # four bytes instead of two hold the length
    start += file.read(2) if wide else b""
    length = int.from_bytes(start[8:], "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"the header of an array has {length:,} bytes")
    return start + file.read(length)


@lru_cache(maxsize=4096)
def _parse_header(header: bytes) -> tuple[tuple[int, ...], np.dtype]:
    file = io.BytesIO(header)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"an array has the unknown format {version}")
    shape, _, dtype = readers[version](file)
    return shape, dtype


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _unreadable(error: Exception, path: Path) -> str:
    # An OSError names the path, which the reader of the message knows already.
    text = str(getattr(error, "strerror", "") or error or type(error).__name__)
    return f"{PREDICTIONS_FILE} cannot be read: {' '.join(text.split())[:200]}"
