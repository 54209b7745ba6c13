"""Single values as users write them: durations, lists of numbers or names, lists of tables."""

from __future__ import annotations

import re
from typing import Any

from fsdil_bench.errors import RequestError


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
    try:
        numbers = _numbers(given) if isinstance(given, str) else given
    except ValueError:
        numbers = []
    if _whole(given):
        numbers = [given]
    if not isinstance(numbers, list) or not numbers or not all(_whole(each) for each in numbers):
        raise RequestError(f"{key} = {given!r} is not a list of numbers", "Write 0,1,2 or 0-2.")
    return list(dict.fromkeys(numbers))


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    return numbers


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


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
