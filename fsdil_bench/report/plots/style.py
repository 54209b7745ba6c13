"""One look for all figures: type, sizes, colours, and how a file is written.

The colours differ for any kind of colour vision. The same figure makes the same bytes: no dates,
and fixed names inside SVG files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fsdil_bench.errors import RequestError
from fsdil_bench.records.record import Record
from fsdil_bench.system.atomic_files import drafted

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito, 2008, without the yellow, which is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX<"
GREY = "#8a8a8a"
INK = "#444444"
#: From low to high accuracy: light to dark, also in print and without colours.
SCALE = "Blues"

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    # The first comes with matplotlib, so that every machine draws the same.
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.titlesize": 11,
    "savefig.dpi": 130,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsdil-bench",
}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw in the common style; for functions that draw a figure."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            import matplotlib
        except ImportError:
            raise RequestError(
                "figures need matplotlib", "Install it: pip install 'fsdil-bench[plots]'"
            ) from None
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return styled


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> Any:
    """A figure of that many inches, and the array of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, np.asarray(figure.subplots(rows, columns, squeeze=False, **options))


def save(figure: Any, file: Path) -> Path:
    """Write the figure in the format that the file's ending names."""
    check_ending(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    ending = file.suffix.lower()
    with drafted(file) as draft:
        figure.savefig(draft, format=ending[1:], metadata=_UNDATED[ending])
    return file


def check_ending(file: Path) -> None:
    """Refuse a file name without the ending of a figure, before any work is done."""
    if file.suffix.lower() not in _UNDATED:
        raise RequestError(
            f"'{file.name}' does not have the ending of a figure",
            f"Let it end in {', '.join(sorted(_UNDATED))}.",
        )


def set_headline(figure: Any, text: str) -> None:
    """A title over several panels."""
    figure.suptitle(text, x=0.01, ha="left", fontweight="bold")


def name_ticks(axes: Any, names: Sequence[str]) -> None:
    """Put a name at each of the positions 0, 1, ...; long names are slanted."""
    if max(map(len, names)) * len(names) > 40:
        slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(names)), names, **slanted)
    else:
        axes.set_xticks(range(len(names)), names)


def run_name(record: Record) -> str:
    """What a run is called in titles."""
    spec = record.spec
    return f"{spec['method']} on {spec['scenario']}, {spec['backbone']}, seed {spec['seed']}"
