"""What to type to get a result again, according to its records."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from fsdil_bench.records.record import Record
from fsdil_bench.records.redaction import without_folders

from .formatting import seed_list

_ALSO_TYPED = {"--backbone": "-b", "--order": "--base"}  # other names of the same option


def reproduce(records: Sequence[Record]) -> str:
    """The command that makes the runs of one row.

    It has the options that were typed, where the recorded command shows them. Otherwise it has all
    options, because a record does not say which were defaults at the time. Folders are left out:
    they belong to another machine.
    """
    record, spec = records[0], records[0].spec
    typed = _typed(record)
    words = ["fsdil-bench", "run", "--method", spec["method"], "--scenario", spec["scenario"]]
    words += ["--seeds", seed_list([each.seed for each in records])]
    for option, value in _options(record):
        if typed is None or _was_typed(option, value, typed):
            words += [option, value]
    words += _plugins(typed or [])
    if all(each.sealed for each in records):
        words.append("--sealed")
    if all(each.provenance.get("deterministic") for each in records):
        words.append("--deterministic")
    return shlex.join(words)


def _options(record: Record) -> Iterator[tuple[str, str]]:
    spec = record.spec
    yield "--backbone", spec["backbone"]
    yield "--precision", spec["precision"]
    yield "--order", ",".join(spec["order"])
    if spec["base_limit"] is not None:
        yield "--base-limit", str(spec["base_limit"])
    if preset := record.scenario["transform"].get("preset"):
        yield "--transform", preset
    for key, value in sorted(spec["scenario_options"].items()):
        yield "--scenario-set", f"{key}={_plain(value)}"
    for key, value in sorted(spec["config"].items()):
        yield "--set", f"{key}={_plain(value)}"


def _typed(record: Record) -> list[str] | None:
    """The words of the recorded command, if it was `run` and its options are all in it."""
    words = str(record.provenance.get("command", "")).split()
    return words if words[1:2] == ["run"] and "--config" not in words else None


def _was_typed(option: str, value: str, typed: Sequence[str]) -> bool:
    if option in ("--set", "--scenario-set"):
        key = value.partition("=")[0]
        return any(word.removeprefix(f"{option}=").startswith(f"{key}=") for word in typed)
    names = (option, _ALSO_TYPED.get(option, option))
    return any(word.partition("=")[0] in names for word in typed)


def _plugins(typed: Sequence[str]) -> list[str]:
    given = [file for option, file in pairwise(typed) if option == "--plugin"]
    return [word for file in given for word in ("--plugin", without_folders(file))]


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
