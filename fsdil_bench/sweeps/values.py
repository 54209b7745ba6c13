"""Single values of a sweep file: durations, lists, rules, and where in the text they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RequestError, unknown

_MATCHES = ("method", "scenario", "dataset", "shots", "seed")


def line_of(text: str, key: str, table: str = "", which: int | str | None = None) -> int | None:
    """The line of a key, in the n-th [[table]] or in [table.name]; of the table without a key."""
    lines = text.splitlines()
    start = 0
    if table:
        name = re.escape(table) + ("" if which is None or isinstance(which, int) else
                                   rf'\s*\.\s*"?{re.escape(which)}"?')  # fmt: skip
        heads = [i for i, line in enumerate(lines) if re.match(rf"\s*\[+\s*{name}\s*\]", line)]
        if not heads:
            return line_of(text, key) if key else None
        start = heads[min(which, len(heads) - 1) if isinstance(which, int) else 0]
    if not key:
        return start + 1
    pattern = re.compile(
        rf'(?:.*[{{,\s])?"?{re.escape(key)}"?\s*[=.\]]|\s*\[+\s*{re.escape(key)}\b'
    )
    for i in range(start, len(lines)):
        if pattern.match(lines[i]):
            return i + 1
    return start + 1 if table else None


def seconds(limit: str | float | None) -> float | None:
    """A duration: a number of seconds, or parts such as "1h30m"."""
    if limit is None:
        return None
    match = re.fullmatch(r"(?:([\d.]+)d)?(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s?)?", str(limit))
    try:
        parts = [float(part or 0) for part in match.groups()] if match and str(limit) else []
    except ValueError:
        parts = []
    total = sum(part * unit for part, unit in zip(parts, (86400, 3600, 60, 1), strict=False))
    if total <= 0:
        raise RequestError(f"time_limit = {limit!r} does not fit", 'Write 600, "90m" or "1h30m".')
    return total


def number_list(key: str, given: Any) -> list[int]:
    """Whole numbers as a list, or as text such as "0-2,7"."""
    numbers = given
    if isinstance(given, str):
        numbers = []
        with suppress(ValueError):
            for part in given.split(","):
                first, dash, last = part.strip().partition("-")
                numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    if _whole(given):
        numbers = [given]
    if not isinstance(numbers, list) or not numbers or not all(_whole(each) for each in numbers):
        raise RequestError(f"{key} = {given!r} is not a list of numbers", "Write 0,1,2 or 0-2.")
    return list(dict.fromkeys(numbers))


def texts(key: str, given: Any) -> list[str]:
    """A list of names, or one name."""
    if isinstance(given, str):
        given = [given]
    if given is None:
        raise RequestError(f"{key} is missing", f'Write {key} = ["..."].')
    if not isinstance(given, list) or not given or not all(isinstance(n, str) for n in given):
        raise RequestError(f"{key} = {given!r} does not fit", f'Write {key} = ["..."].')
    return given


def tables(key: str, given: Any) -> list[dict[str, Any]]:
    """A list of tables."""
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise RequestError(f"{key} is not a list of tables", f"Write [[{key}]] above each.")
    return given


def exclusions(given: Any) -> list[dict[str, list[Any]]]:
    """Rules such as { method = "cvlc-*", shots = [4, 8] }."""
    for rule in tables("exclude", given):
        if not rule:
            raise RequestError("exclude has an empty rule", 'Write { method = "ncm" }.')
        for key in rule:
            if key not in _MATCHES:
                near = unknown("key of exclude:", key, _MATCHES, "docs/sweeps.md")
                raise RequestError(near.message, f"Valid keys: {', '.join(_MATCHES)}.")
    return [
        {key: value if isinstance(value, list) else [value] for key, value in rule.items()}
        for rule in given
    ]


def excluded(rule: Mapping[str, list[Any]], method: str, scenario: ScenarioId, seed: int) -> bool:
    """Whether all that a rule says is so."""
    facts = {
        "method": method, "scenario": str(scenario), "dataset": scenario.dataset,
        "shots": scenario.shots, "seed": seed,
    }  # fmt: skip
    return all(
        any(fnmatchcase(str(facts[key]), str(pattern)) for pattern in patterns)
        for key, patterns in rule.items()
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
