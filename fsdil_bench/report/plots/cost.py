"""Cost: the time and the state of one run, and accuracy against cost for several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from fsdil_bench.analysis.grouping import (
    distinct_runs,
    group_into_boards,
    group_into_rows,
    row_labels,
)
from fsdil_bench.errors import RequestError
from fsdil_bench.records.record import Record

from .style import (
    GREY,
    MARKERS,
    PALETTE,
    in_style,
    name_ticks,
    new_figure,
    run_name,
    save,
    set_headline,
)

# In the order in which they are stacked, each always in its colour; others, if any, follow.
_PHASES = {
    "learn": "learning",
    "predict": "predicting",
    "oracle": "predicting with the true domain",
    "features": "frozen features",
    "images": "loading images",
}


@in_style
def plot_cost(record: Record, file: Path) -> Path:
    """Draw the seconds of every phase and the size of the state, domain by domain."""
    names = record.domain_names
    figure, ((time, state),) = new_figure(9.6, 4.2, 1, 2, width_ratios=(3, 2))
    _seconds(time, record, len(names))
    bytes_ = np.asarray(record.cost["state_bytes"], dtype=float)
    scale, unit = _unit(bytes_.max())
    bars = state.bar(range(len(names)), bytes_ / scale, color=PALETTE[0], width=0.7)
    state.bar_label(bars, [f"{value:.3g}" for value in bytes_ / scale], padding=2, fontsize=8)
    state.set_ylabel(f"state ({unit})")
    state.set_title("what the method remembers")
    for axes in (time, state):
        name_ticks(axes, names)
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("after learning" if axes is state else "domain")
        axes.grid(axis="y")
    set_headline(figure, f"{run_name(record)}: cost")
    return save(figure, file)


def _seconds(axes: Any, record: Record, domains: int) -> None:
    spent = [each["seconds"] for each in record.cost["per_domain"]]
    known = {phase for each in spent for phase in each}
    below = np.zeros(domains)
    for i, phase in enumerate([*_PHASES, *sorted(known - set(_PHASES))]):
        if phase not in known:
            continue
        seconds = np.array([each.get(phase, 0.0) for each in spent])
        label = f"{_PHASES.get(phase, phase)}: {_time(seconds.sum())}"
        axes.bar(range(domains), seconds, 0.7, below, color=PALETTE[i % len(PALETTE)], label=label)
        below += seconds
    axes.set_ylabel("seconds")
    axes.set_title(f"where the time goes: {_time(below.sum())} in all")
    axes.legend(loc="upper right")


@in_style
def plot_tradeoff(records: Sequence[Record], file: Path, metric: str = "AA*") -> Path:
    """Draw a score against learning time and state size, a point per row (mean over seeds)."""
    boards = group_into_boards(distinct_runs(records))
    if len(boards) != 1:
        raise RequestError(
            f"the runs are of {len(boards)} boards", "Give a folder with the runs of one board."
        )
    [(board, members)] = boards.items()
    rows = group_into_rows(members)
    labels = row_labels(rows)
    figure, ((time, state),) = new_figure(10.4, 4.8, 1, 2, sharey=True)
    for i, (key, runs) in enumerate(rows.items()):
        score = fmean(r.metrics[metric] or 0.0 for r in runs)
        style = {
            "color": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[i % len(MARKERS)],
            "markeredgecolor": "white", "markersize": 9, "linestyle": "", "alpha": 0.9,
        }  # fmt: skip
        # There is no logarithm of zero.
        learn = fmean(r.cost["seconds"].get("learn", 0.0) for r in runs)
        time.plot(max(learn, 0.01), score, **style)
        kept = fmean(r.cost["state_bytes"][-1] for r in runs)
        state.plot(max(kept / 1024, 1), score, label=labels[key], **style)
    for axes, label in (
        (time, "seconds spent learning (0.01 or more)"),
        (state, "state at the end (KB, 1 or more)"),
    ):
        axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.grid(color=GREY, alpha=0.25)
    time.set_ylabel(f"{metric} (%)")
    time.set_title(f"{board.scenario}, {board.backbone}: {metric} against cost")
    state.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(figure, file)


def _unit(largest: float) -> tuple[float, str]:
    for scale, unit in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if largest >= scale:
            return float(scale), unit
    return 1.0, "bytes"


def _time(seconds: float) -> str:
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{1000 * seconds:.0f} ms"
