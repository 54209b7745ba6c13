"""Figures in Python: drawn at once, shown by a notebook, and written to a file if wanted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.analysis.comparison import compare
from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.records.record import Record, find_records

#: What a figure is made of: records, and folders below which there are runs.
Runs = str | Path | Record | Iterable[Record]


@dataclass(frozen=True)
class Picture:
    """A figure of runs. A notebook shows it."""

    png: bytes
    _draw: Callable[[Path], Path]

    def save(self, file: str | Path) -> Path:
        """Write it to a file that ends in .png, .svg or .pdf."""
        return self._draw(Path(file))

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"<Picture, {len(self.png) / 1024:.0f} KB>"


def plot(kind: str, *runs: Runs, methods: Sequence[str] = ()) -> Picture:
    """Draw a figure of runs; `runs` are records, lists of them, and folders that hold runs.

    `kind` is "matrix", "curves" or "cost" for one run, "cost", "forgetting" or "shots" for several
    methods (of these, `methods` chooses), or "comparison" for the runs of two. It needs matplotlib
    (extra `plots`).
    """
    groups = [_records(each) for each in runs]
    draw = _drawing(kind, groups, methods)
    with tempfile.TemporaryDirectory() as place:
        png = draw(Path(place, "picture.png")).read_bytes()
    return Picture(png, draw)


def _records(runs: Runs) -> list[Record]:
    if isinstance(runs, Record):
        return [runs]
    return find_records(runs) if isinstance(runs, str | Path) else list(runs)


def _drawing(
    kind: str, groups: Sequence[Sequence[Record]], methods: Sequence[str]
) -> Callable[[Path], Path]:
    """What draws the figure into a file."""
    from .comparison import plot_comparison
    from .cost import plot_cost, plot_tradeoff
    from .curves import plot_curves
    from .forgetting import plot_forgetting
    from .matrix import plot_matrix
    from .shots import plot_shots

    of_one = {"matrix": plot_matrix, "curves": plot_curves, "cost": plot_cost}
    of_methods = ("forgetting", "shots")
    if kind not in (*of_one, *of_methods, "comparison"):
        raise unknown("kind of figure", kind, [*of_one, *of_methods, "comparison"])
    if methods and kind not in of_methods:
        raise RequestError("methods are chosen in figures of several", "Leave out `methods`.")
    records = [record for group in groups for record in group]
    if not records:
        raise RequestError("there are no runs to draw", "Give records, or folders that have runs.")
    if kind == "comparison":
        if len(groups) != 2:
            raise RequestError("a comparison is of two methods", "Give the runs of each.")
        a, b = groups
        found = compare(a, b)
        return lambda file: plot_comparison(found, a, b, file)
    if kind == "forgetting":
        return lambda file: plot_forgetting(records, file, methods)
    if kind == "shots":
        return lambda file: plot_shots(records, file, methods=methods)
    if kind == "cost" and len(records) > 1:
        return lambda file: plot_tradeoff(records, file)
    if len(records) > 1:
        raise RequestError(f"a figure of kind {kind} is of one run", "Give one record.")
    return lambda file: of_one[kind](records[0], file)
