"""A sweep file as text and as tables: a mistake is reported with the file and the line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench.errors import RequestError

from .values import short

_DEEPEST = 20  # tables in tables


@dataclass(frozen=True)
class SweepText:
    """What a sweep file says. The flags of the command line alone have neither path nor text."""

    content: Mapping[str, Any]
    path: Path | None = None
    text: str = ""

    @property
    def name(self) -> str:
        """What a user calls it."""
        return str(self.path) if self.path else "the command line"

    def table(self, name: str) -> Mapping[str, Any]:
        """The table [name], empty if there is none."""
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            with self.at(name):
                raise RequestError(f"{name} = {found!r} does not fit", f"Write it as [{name}].")
        return found

    @contextmanager
    def at(self, key: str, table: str = "", which: int | str | None = None) -> Iterator[None]:
        """Put file and line before the message of a mistake that is found inside."""
        try:
            yield
        except RequestError as error:
            if self.path is None or error.message.startswith(f"{self.path}"):
                raise
            line = line_of(self.text, key, table, which)
            where = f"{self.path}, line {line}" if line else f"{self.path}"
            raise RequestError(f"{where}: {error.message}", error.remedy) from None


def check_values(file: SweepText) -> None:
    """Refuse what TOML allows and no option takes: it would be an obscure error much later."""
    waiting = [(key, value, 1) for key, value in file.content.items()]
    while waiting:  # a recursion would end with the tables that it looks for
        key, value, depth = waiting.pop()
        wrong = ""
        if isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else ((key, each) for each in value)
            waiting += [(name, each, depth + 1) for name, each in inner]
            wrong = f"is nested more than {_DEEPEST} levels deep" if depth > _DEEPEST else ""
        elif isinstance(value, float) and not math.isfinite(value):
            wrong = f"= {value} is not a finite number"
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            wrong = "is a number of more than 64 bits"
        elif isinstance(value, str) and "\0" in value:
            wrong = f"= {short(value)} has a NUL character"
        if wrong:
            with file.at(key):
                raise RequestError(f"{short(key)[1:-1]} {wrong}", "See docs/sweeps.md.")


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
