"""What a check says: passed or not, what it found, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    name: str
    passed: bool
    found: str
    remedy: str = ""


class CheckError(Exception):
    """Raised by a check that does not pass."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found}\n{remedy}")
        self.found = found
        self.remedy = remedy
