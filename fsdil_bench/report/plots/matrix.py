"""The accuracy matrix as a picture: every number, and its size as a colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fsdil_bench.records.record import Record

from .style import SCALE, in_style, name_ticks, new_figure, run_name, save


@in_style
def plot_matrix(record: Record, file: Path) -> Path:
    """Draw A[t, i] of a run, with its test sets of no domain as further columns."""
    names = record.domain_names
    unseen = record.unseen or {"names": [], "matrix": [[]] * len(names)}
    columns = [*names, *(f"unseen:\n{name}" for name in unseen["names"])]
    values = np.full((len(names), len(columns)), np.nan)
    for t, row in enumerate(record.matrix):
        values[t, : t + 1] = row[: t + 1]
        values[t, len(names) :] = unseen["matrix"][t]

    figure, ((axes,),) = new_figure(2.6 + 0.75 * len(columns), 1.9 + 0.5 * len(names))
    axes.set_facecolor("#f4f4f4")
    picture = axes.imshow(values, cmap=SCALE, vmin=0, vmax=100, aspect="auto")
    for (t, i), value in np.ndenumerate(values):
        if np.isfinite(value):
            shade = "white" if value > 60 else "black"
            axes.text(i, t, f"{value:.1f}", ha="center", va="center", color=shade)
    name_ticks(axes, columns)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("tested on")
    axes.set_ylabel("after learning")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(f"{run_name(record)}\naccuracy (%) on every domain seen so far")
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    return save(figure, file)
