"""Single values as users write them: durations, lists of numbers or names, lists of tables."""

from __future__ import annotations

import re
from typing import Any

from fsdil_bench.errors import RequestError
from fsdil_bench.seeds import check_seed

#: More in one list is a typo, and would fill the memory.
MOST_VALUES = 10_000
_MOST_LETTERS = 80  # of a value in a message


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
    if not 0 < total < float("inf"):
        raise RequestError(
            f"time_limit = {short(limit)} does not fit", 'Write 600, "90m" or "1h30m".'
        )
    return total


def number_list(key: str, given: Any, least: int = 0) -> list[int]:
    """Whole numbers from `least` on, each once: a list, a number, or text such as "0-2,7"."""
    numbers = _numbers(key, given) if isinstance(given, str) else given
    if _whole(given):
        numbers = [given]
    if not isinstance(numbers, list) or not numbers or not all(_whole(each) for each in numbers):
        raise RequestError(
            f"{key} = {short(given)} is not a list of numbers", "Write 0,1,2 or 0-2."
        )
    check_length(key, len(numbers))
    for number in numbers:
        if number < least:
            raise RequestError(f"{key}: {number} does not fit", f"Take numbers from {least} on.")
    return list(dict.fromkeys(numbers))


def seed_list(key: str, given: Any) -> list[int]:
    """Seeds, written like other numbers."""
    return [check_seed(seed) for seed in number_list(key, given)]


def _numbers(key: str, text: str) -> list[int]:
    """What a text says, in full: a part that is not understood is an error."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            what = "goes down" if match else "is not a number"
            raise RequestError(
                f"{key} = {short(text)}: {short(part.strip())} {what}", "Write 0,1,2 or 0-2."
            )
        check_length(key, len(numbers) + last - first + 1)
        numbers += range(first, last + 1)
    return numbers


def check_length(key: str, length: int) -> None:
    """Refuse a list that is too long."""
    if length > MOST_VALUES:
        raise RequestError(
            f"{key} has {length:,} values", f"A list of a sweep has at most {MOST_VALUES:,}."
        )


def texts(key: str, given: Any) -> list[str]:
    """A list of names, or one name."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list) or not given or not all(isinstance(n, str) for n in given):
        raise RequestError(f"{key} = {short(given)} does not fit", f'Write {key} = ["..."].')
    check_length(key, len(given))
    return given


def tables(key: str, given: Any) -> list[dict[str, Any]]:
    """A list of tables."""
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise RequestError(f"{key} is not a list of tables", f"Write [[{key}]] above each.")
    return given


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def short(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."
