"""Measured numbers beside those that the paper reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import paper
from .grouping import Sheet
from .rows import Row


@dataclass(frozen=True)
class Comparison:
    """A reported number and what was measured for it; `case` is the verdict in short."""

    dataset: str
    shots: int
    method: str
    label: str
    metric: str
    reported: str
    measured: float | None
    std: float | None
    difference: float | None
    case: str
    verdict: str
    sheet: str
