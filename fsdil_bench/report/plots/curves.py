"""Accuracy over the stream: what learning a domain and forgetting it look like."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from fsdil_bench.records.record import Record

from .style import GREY, MARKERS, PALETTE, in_style, name_ticks, new_figure, run_name, save


@in_style
def plot_curves(record: Record, file: Path) -> Path:
    """Draw a line for each domain from when it is learned to the end, and their mean."""
    names = record.domain_names
    figure, ((axes,),) = new_figure(7.2, 4.4)
    steps = range(len(names))
    for i, name in enumerate(names):
        style = {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[i % len(MARKERS)]}
        axes.plot(steps[i:], [row[i] for row in record.matrix[i:]], label=name, **style)
    means = [fmean(row[: t + 1]) for t, row in enumerate(record.matrix)]
    axes.plot(steps, means, color=GREY, linestyle="--", label="mean of those seen", zorder=1)
    name_ticks(axes, names)
    axes.set_xlim(-0.15, len(names) - 0.85)
    axes.set_xlabel("after learning")
    axes.set_ylabel("accuracy (%)")
    axes.grid(axis="y")
    axes.set_title(f"{run_name(record)}\naccuracy on each domain along the stream")
    axes.legend(title="tested on", loc="center left", bbox_to_anchor=(1.0, 0.5), alignment="left")
    return save(figure, file)
