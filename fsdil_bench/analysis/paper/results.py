"""The paper's result tables, from the file beside this module."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .names import LEAD, our_name, usual_name

CITATION = "CVLC: Continual Vision-Language Consolidation, 2026"

#: How many seeds the paper's means are over, for its own rows; those of its other rows, whose
#: number it does not state, are taken to be as many.
SEEDS = {"cddb-hard": 5, "core50": 3, "domainnet": 3}

_TITLES = {
    "cddb-hard": "CDDB-Hard",
    "core50": "CORe50",
    "domainnet": "DomainNet",
    "ablations": "ablations on CORe50",
    "five-shot": "five shots, pooled accuracy",
}


@dataclass(frozen=True)
class Reported:
    """A number of the paper: percent, mean and population standard deviation over seeds.

    `method` is our name, `label` the paper's spelling; the row of differences has no method. The
    mean is None where the paper has a dash, the deviation where it gives none.
    """

    table: str
    dataset: str
    shots: int
    method: str
    label: str
    backbone: str
    metric: str
    mean: float | None
    std: float | None

    @property
    def seeds(self) -> int:
        """How many seeds the mean is over."""
        return SEEDS[self.dataset]

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        return f"{self.mean:.2f}" + (f" ± {self.std:.2f}" if self.std is not None else "")


@dataclass(frozen=True)
class Table:
    """One of the paper's tables, with its cells row by row."""

    name: str
    title: str
    cells: tuple[Reported, ...]


@cache
def tables() -> tuple[Table, ...]:
    """All result tables in the order of the paper, differences and dashes included."""
    cells = _read()
    return tuple(
        Table(name, title, tuple(cell for cell in cells if cell.table == name))
        for name, title in _TITLES.items()
    )


def reported(dataset: str, shots: int, method: str, metric: str) -> Reported | None:
    """What the paper reports for a method (in our names), or None where it has no number."""
    return _index().get((dataset, shots, usual_name(method), metric))


@cache
def _index() -> dict[tuple[str, int, str, str], Reported]:
    """Numbers by what they are of; the ablations repeat some of the main tables, which come
    first."""
    found: dict[tuple[str, int, str, str], Reported] = {}
    for cell in _read():
        if cell.mean is not None and cell.label != LEAD:
            found.setdefault((cell.dataset, cell.shots, cell.method, cell.metric), cell)
    return found


@cache
def _read() -> tuple[Reported, ...]:
    text = files(__package__).joinpath("results.csv").read_text(encoding="utf-8")
    return tuple(
        Reported(
            table=row["table"],
            dataset=row["dataset"],
            shots=int(row["shots"]),
            method=our_name(row["method"]),
            label=row["method"],
            backbone=row["backbone"],
            metric=row["metric"],
            mean=float(row["mean"]) if row["mean"] else None,
            std=float(row["std"]) if row["std"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    )
