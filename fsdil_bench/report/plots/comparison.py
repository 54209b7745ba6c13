"""Two methods side by side, and the ranks of many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from fsdil_bench.analysis.comparison import Comparison
from fsdil_bench.analysis.statistics import Ranking, shared_seeds
from fsdil_bench.records.record import Record

from .style import GREY, INK, PALETTE, in_style, name_ticks, new_figure, save, set_headline


@in_style
def plot_comparison(
    found: Comparison, a: Sequence[Record], b: Sequence[Record], file: Path
) -> Path:
    """Draw the differences per domain with their intervals, and both methods over the stream."""
    names = a[0].domain_names
    overall = found.overall
    figure, ((left, right),) = new_figure(10.4, 2.4 + 0.36 * len(names), 1, 2)
    _differences(left, found)
    for method, records, colour, marker in zip(
        (overall.a, overall.b), shared_seeds(a, b), PALETTE, "os", strict=False
    ):
        curves = np.array(
            [[fmean(row[: t + 1]) for t, row in enumerate(r.matrix)] for r in records]
        )
        for curve in curves if len(curves) > 1 else ():
            right.plot(curve, color=colour, linewidth=0.8, alpha=0.45)
        right.plot(curves.mean(0), color=colour, marker=marker, label=method)
    name_ticks(right, names)
    right.set_xlabel("after learning")
    right.set_ylabel("mean accuracy over domains seen (%)")
    right.set_title("over the stream" + (", thin: each seed" if len(overall.seeds) > 1 else ""))
    right.grid(axis="y")
    right.legend()
    pair = f"{overall.a} and {overall.b} on {a[0].spec['scenario']}"
    title = f"{pair}; intervals cover {overall.interval.covers}"
    set_headline(figure, title)
    return save(figure, file)


def _differences(axes: Any, found: Comparison) -> None:
    overall = found.overall
    score = next(each for each in found.scores if each.name == overall.metric)
    rows = [score, *found.domains]
    heights = [0.0, *(i + 1.4 for i in range(len(found.domains)))]  # the score stands apart
    for height, row in zip(heights, rows, strict=True):
        colour = GREY if not row.significant else PALETTE[0] if row.difference > 0 else PALETTE[1]
        axes.plot([row.interval.low, row.interval.high], [height] * 2, color=colour, linewidth=2.4)
        axes.plot(row.difference, height, "o", color=colour, markersize=7)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(heights, [row.name for row in rows])
    axes.set_ylabel("accuracy at the end")
    axes.invert_yaxis()
    reach = max(max(-row.interval.low, row.interval.high) for row in rows) * 1.08 or 1.0
    axes.set_xlim(-reach, reach)
    axes.grid(axis="x")
    level = f"{overall.interval.level:.0%} intervals"
    axes.set_xlabel(f"percentage points, {level}; grey: not significant (domains with Holm)")
    axes.set_title(f"← {overall.b} better | {overall.a} better →", loc="center")


@in_style
def plot_ranks(found: Ranking, file: Path, metric: str) -> Path:
    """Draw average ranks on a line, with bars over methods without a significant difference."""
    names = list(found.ranks)
    half = (len(names) + 1) // 2
    bars = len(found.groups)
    figure, ((axes,),) = new_figure(8.4, 1.3 + 0.28 * half + 0.16 * bars)
    low, high = 1, max(len(names), 2)
    axes.set_xlim(low - 0.38 * (high - low), high + 0.38 * (high - low))
    bottom = 0.6 + 0.35 * bars + 0.55 * half
    axes.set_ylim(bottom, -0.9)
    axes.axis("off")
    axes.plot([low, high], [0, 0], color=INK, linewidth=1)
    for tick in range(low, high + 1):
        axes.plot([tick, tick], [0, -0.15], color=INK, linewidth=1)
        axes.text(tick, -0.25, str(tick), ha="center", va="bottom")
    for i, (name, rank) in enumerate(found.ranks.items()):
        left = i < half
        height = 0.6 + 0.35 * bars + 0.55 * (i if left else len(names) - 1 - i)
        edge = low - 0.05 * (high - low) if left else high + 0.05 * (high - low)
        axes.plot([rank, rank, edge], [0, height, height], color=INK, linewidth=0.8)
        text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        axes.text(edge, height, f" {text} ", ha="right" if left else "left", va="center")
    for i, group in enumerate(found.groups):
        ends = [found.ranks[group[0]] - 0.05, found.ranks[group[-1]] + 0.05]
        axes.plot(ends, [0.35 + 0.35 * i] * 2, color=PALETTE[0], linewidth=4)
    number = "1 board" if len(found.boards) == 1 else f"{len(found.boards)} boards"
    title = f"average rank by {metric} over {number} (1 is best)"
    if found.critical_difference is not None:
        title += f"\nbars: not significant, critical difference {found.critical_difference:.2f}"
    axes.set_title(title)
    return save(figure, file)
