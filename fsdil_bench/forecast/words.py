"""Large numbers as people say them."""

from __future__ import annotations

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def say_flops(operations: float) -> str:
    """Floating-point operations: 35.1 GFLOP."""
    return f"{_scaled(operations)}FLOP"


def say_bytes(count: float) -> str:
    """Bytes: 1.2 GB."""
    return f"{_scaled(count)}B"


def _scaled(number: float) -> str:
    place = 0
    while number >= 999.5 and place + 1 < len(_PREFIXES):
        number, place = number / 1000, place + 1
    digits = 0 if number >= 100 or not place else 1
    return f"{number:.{digits}f} {_PREFIXES[place]}"
